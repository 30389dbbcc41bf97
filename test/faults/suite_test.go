// Package faults shows that the operator reaches the same end whatever hits it on the way: it is killed at each of its writes
// in turn, sees late what happens, has a share of its requests refused, loses the API server or every packet, is paused until
// another leads, or has its clock set; the API server or etcd is paused. A crash is a real one, of the operator's process, by a
// proxy before the API server that counts its writes.
//
//	go test -race ./test/faults                       every other spec: some of the stories, writes and faults that last
//	TIDELINE_FAULTS=each go test -race ./test/faults  every write once, dying before or after it, and some faults that last
//	TIDELINE_FAULTS=full go test -race ./test/faults  every write with every fault, and all that last
//
// The seed of the run (--seed) chooses which, so that many short runs try what one long run tries.
//
// Ginkgo's own command does the same. At the end stands a table of what was tried.
package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

func TestFaults(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Faults")
}

var (
	// fullGrid is true when every fault is to hit every write.
	fullGrid = os.Getenv("TIDELINE_FAULTS") == "full"
	// spotChecks is true when only a part of what can be hit is.
	spotChecks = os.Getenv("TIDELINE_FAULTS") == ""
)

// spots returns every n-th of all, at least one: another part for each seed of n in a row. All of them unless spotChecks.
func spots[T any](all []T, n int) []T {
	if !spotChecks {
		return all
	}
	n = min(n, len(all))
	var chosen []T
	for i := int(GinkgoRandomSeed() % int64(max(n, 1))); i < len(all); i += n {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// shared is what all runs share: a cluster with Tideline installed and no operator. Each run starts its own.
var shared struct {
	*testutil.World
	cluster *cluster.Cluster
	// dir has the logs of all processes; operator is the program, kubeconfig that of its service account, configuration its file,
	// and stores the folder in which it reads the stores of merges.
	dir, operator, kubeconfig, configuration, stores string
}

// All specs run in the first process, because they share their lanes (see ahead_test.go); so the others need no cluster.
var _ = SynchronizedBeforeSuite(func(ctx context.Context) {
	Expect(startCluster(ctx)).To(Succeed(), "the cluster starts")
}, func() {}, NodeTimeout(30*time.Minute)) // a first run builds the parts of the cluster

var _ = SynchronizedAfterSuite(func() {}, func() {
	endWork()
	if shared.cluster != nil {
		Expect(shared.cluster.Stop()).To(Succeed(), "no process of the cluster ended early")
	}
})

var _ = ReportAfterSuite("logs", func(r Report) {
	switch {
	case shared.dir == "":
	case r.SuiteSucceeded:
		Expect(os.RemoveAll(shared.dir)).To(Succeed(), "nothing is left behind")
	default:
		fmt.Println("The logs of all processes are in", shared.dir)
	}
})

func startCluster(ctx context.Context) error {
	var err error
	if shared.dir, err = os.MkdirTemp("", "tideline-suite-"); err != nil {
		return err
	}
	// The program first: building it takes both cores, which the cluster needs then.
	if shared.operator, err = testutil.BuildOperator(ctx, shared.dir); err != nil {
		return err
	}
	auditLog := filepath.Join(shared.dir, "audit.log")
	// Runs put nodes of their own beside one large node that none uses, because Volcano admits gangs by what the whole cluster
	// holds. Volcano looks often, so that they wait little.
	shared.cluster, err = cluster.Start(ctx, cluster.Options{
		GPUNodes: 1, GPUsPerNode: 1024, SchedulePeriod: 200 * time.Millisecond,
		Dir: filepath.Join(shared.dir, "cluster"), AuditLog: auditLog, Log: GinkgoWriter,
	})
	if err != nil {
		return err
	}
	if shared.World, err = testutil.NewWorld(shared.cluster.KubeconfigPath(), auditLog); err != nil {
		return err
	}
	shared.kubeconfig = filepath.Join(shared.dir, "operator.kubeconfig")
	return errors.Join(configure(), shared.Install(ctx), installComponents(ctx),
		shared.cluster.KubeconfigFor(ctx, testutil.OperatorNamespace, testutil.OperatorServiceAccount, shared.kubeconfig))
}

// configure writes the file that all operators read. A run that may complete is looked at often; stores of merges that wait are
// not, so that nothing makes up for a look that was forgotten.
func configure() error {
	shared.stores, shared.configuration = filepath.Join(shared.dir, "stores"), filepath.Join(shared.dir, "configuration.yaml")
	return errors.Join(os.Mkdir(shared.stores, 0o700), os.WriteFile(shared.configuration, fmt.Appendf(nil, `
apiVersion: config.tideline.io/v1alpha1
kind: Configuration
merges:
  localStores: %q
  runningIntervalSeconds: 1
pages:
  host: pages.example.com
  ingressClass: any
`, shared.stores), 0o600))
}

// installComponents gives the operator the rights that some jobs want of it.
func installComponents(ctx context.Context) error {
	objects, err := testutil.Manifests(ctx, "components/ssh-keys/role.yaml", "components/job-network-policy/role.yaml",
		"components/job-pages/*.yaml")
	for _, o := range objects {
		err = errors.Join(err, shared.Client.Create(ctx, o))
	}
	return err
}
