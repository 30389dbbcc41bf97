// Package merge shows the numbered behaviours of merges on a real API server, a real Volcano and a real S3 server, with the
// operator as a real process. Specs have nodes and pools of their own, and run side by side.
package merge

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestMerge(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Merges")
}

// pools may be named by MergeJobs of this suite: each spec takes one for itself.
var pools = []string{
	"tideline-merge", "line", "sticky", "linger", "timeout", "exit", "lost", "stores", "outage", "many", "hand", "gone", "shapes",
	"wrong", "twice", "rest", "restart", "surplus", "claims", "drain", "window", "volume", "capped", "beside",
}

// shared is what all processes of the suite know.
type shared struct {
	Kubeconfig, AuditLog string
	Store                testutil.S3
	// Outage is an address on which a spec may serve the store, or not.
	Outage string
}

var (
	world *testutil.World
	given shared
	// installation is set in the first process only.
	installation *testutil.Installation
)

var _ = SynchronizedBeforeSuite(func(ctx context.Context) []byte {
	in, err := testutil.Prepare(ctx, cluster.Options{
		GPUNodes: 1, GPUsPerNode: 4096, SchedulePeriod: 100 * time.Millisecond, Log: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred(), "the cluster starts")
	installation = in
	store, err := in.Cluster.StartObjectStore(ctx)
	Expect(err).NotTo(HaveOccurred(), "the object store starts")
	s := shared{
		Kubeconfig: in.Kubeconfig, AuditLog: in.AuditLog, Outage: freeAddress(),
		Store: testutil.S3{
			Endpoint: store.Endpoint, AccessKey: store.AccessKey, SecretKey: store.SecretKey, Directory: store.Directory,
		},
	}
	configuration := filepath.Join(in.Logs(), "configuration.yaml")
	Expect(os.WriteFile(configuration, fmt.Appendf(nil, `apiVersion: config.tideline.io/v1alpha1
kind: Configuration
claims:
  placementTimeoutSeconds: 45
merges:
  pools: [%s]
  endpoints: [%q, "http://%s"]
  waitingIntervalSeconds: 5
  runningIntervalSeconds: 1
`, strings.Join(pools, ", "), s.Store.Endpoint, s.Outage), 0o600)).To(Succeed())
	Expect(in.Install(ctx)).To(Succeed(), "Tideline is installed")
	Expect(in.Operate(ctx, testutil.OperatorOptions{Args: []string{"--config=" + configuration}})).To(Succeed(), "the operator runs")
	known, err := json.Marshal(s)
	Expect(err).NotTo(HaveOccurred())
	return known
}, func(known []byte) {
	Expect(json.Unmarshal(known, &given)).To(Succeed())
	var err error
	world, err = testutil.NewWorld(given.Kubeconfig, given.AuditLog)
	Expect(err).NotTo(HaveOccurred(), "the cluster is reached")
}, NodeTimeout(30*time.Minute))

var _ = SynchronizedAfterSuite(func() {}, func() {
	if installation != nil {
		Expect(installation.Stop()).To(Succeed(), "no process ended early and the operator's log is clean")
	}
})

// rightsOfMerges are those of the operator's role that it has for merges alone. The suite of trainings holds it to all others.
const rightsOfMerges = `
kind: ClusterRole
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [delete]}
`

var _ = ReportAfterSuite("logs", func(r Report) {
	switch {
	case installation == nil:
	case r.SuiteSucceeded:
		if suite.Complete(r) {
			Expect(testutil.Unused([]byte(rightsOfMerges), nil, installation.AuditLog)).To(BeEmpty(), "merges use what they alone may")
		}
		Expect(installation.RemoveLogs()).To(Succeed(), "nothing is left behind")
	default:
		fmt.Println("The logs of all processes are in", installation.Logs())
	}
})

// freeAddress is one on which nobody listens.
func freeAddress() string {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
