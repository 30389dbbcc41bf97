// Package suite prepares the cluster of a ginkgo suite. All processes of a parallel run share one cluster and one operator.
package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// Suite is what specs find when they run.
type Suite struct {
	// World is the cluster with Tideline on it.
	World *testutil.World

	// installation is set in the first process only.
	installation *testutil.Installation
	// rights are set where every right of the operator's role must be used, and must lists those of it that must be.
	rights *rights
	must   []string
	// configure changes the default configuration of the operator; nil for an operator without a file.
	configure func(*config.Configuration)
}

// rights say what is known of rights that may be unused.
type rights struct{ except []string }

// UseEveryRight has the suite fail, when all of its specs ran, if the operator's role has a right that no request of the operator
// needed, on any of the clusters of the suite. What except names need not be used.
func (s *Suite) UseEveryRight(except ...string) *Suite {
	s.rights = &rights{except}
	return s
}

// Configured has the operator started with its default configuration, changed so.
func (s *Suite) Configured(configure func(*config.Configuration)) *Suite {
	s.configure = configure
	return s
}

// Operator is that of the suite, for specs that are Serial, which run where it was started.
func (s *Suite) Operator() *testutil.Operator { return s.installation.Operator }

// Installation is that of the suite, for specs that are Serial and start the operator as they need it.
func (s *Suite) Installation() *testutil.Installation { return s.installation }

// MustUse has the suite fail, when all of its specs ran, if no request of the operator needed one of these rights, each written
// as [testutil.Right] does: those that other suites except.
func (s *Suite) MustUse(rights ...string) *Suite {
	s.must = rights
	return s
}

// New registers a cluster with Tideline for the suite; it is called once, at the top level. What else runs on the cluster is
// started by further.
func New(o cluster.Options, further ...func(context.Context, *cluster.Cluster) error) *Suite {
	s := &Suite{}
	ginkgo.SynchronizedBeforeSuite(func(ctx context.Context) []byte {
		paths, err := s.start(ctx, o)
		gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the cluster starts and the operator runs on it")
		for _, start := range further {
			gomega.Expect(start(ctx, s.installation.Cluster)).To(gomega.Succeed(), "all that belongs to the suite runs")
		}
		return paths
	}, func(shared []byte) {
		gomega.Expect(s.join(shared)).To(gomega.Succeed(), "the cluster is reached")
	}, ginkgo.NodeTimeout(30*time.Minute)) // a first run builds the parts of the cluster

	ginkgo.SynchronizedAfterSuite(func() {}, func() {
		if s.installation != nil {
			gomega.Expect(s.installation.Stop()).To(gomega.Succeed(), "no process ended early and the operator's log is clean")
		}
	})

	// Logs are kept when a spec failed in any of the processes.
	ginkgo.ReportAfterSuite("logs", func(r ginkgo.Report) {
		switch {
		case s.installation == nil:
		case r.SuiteSucceeded:
			if s.rights != nil && Complete(r) {
				gomega.Expect(s.unused(s.rights.except)).To(gomega.BeEmpty(),
					"the operator's role (config/rbac) allows what it needs; the audit logs are in %s", s.installation.Logs())
			}
			if len(s.must) > 0 && Complete(r) {
				gomega.Expect(s.unused(nil)).NotTo(gomega.ContainElement(gomega.BeElementOf(s.must)),
					"the operator uses what it has for this alone")
			}
			gomega.Expect(s.installation.RemoveLogs()).To(gomega.Succeed(), "nothing is left behind")
		default:
			fmt.Println("The logs of all processes are in", s.installation.Logs())
		}
	})
	return s
}

// paths are what the first process tells the others.
type paths struct{ Kubeconfig, AuditLog string }

// Long labels specs that wait or try too much for make test, which leaves them to make test-long.
var Long = ginkgo.Label("long")

// Complete holds when no spec was left out but long ones.
func Complete(r ginkgo.Report) bool {
	for _, spec := range r.SpecReports.WithLeafNodeType(types.NodeTypeIt) {
		leftToOthers := spec.State == types.SpecStateSkipped && slices.Contains(spec.Labels(), Long[0])
		if spec.State != types.SpecStatePassed && !leftToOthers {
			return false
		}
	}
	return true
}

// unused are the rights of the operator's role that no request in the audit logs of the suite needed, but for exceptions.
func (s *Suite) unused(except []string) ([]string, error) {
	logs, err := filepath.Glob(filepath.Join(s.installation.Logs(), "*"+auditSuffix))
	if err != nil {
		return nil, err
	}
	return testutil.Unused(rbac.Roles, except, logs...)
}

// auditSuffix ends the names of audit logs.
const auditSuffix = "audit.log"

// Own is the function Own, on a cluster whose requests count for [Suite.UseEveryRight].
func (s *Suite) Own(ctx context.Context, o cluster.Options, flags ...string) *testutil.Installation {
	ginkgo.GinkgoHelper()
	return own(ctx, o, func(in *testutil.Installation) error {
		return os.Rename(in.AuditLog, filepath.Join(filepath.Dir(s.World.AuditLog), filepath.Base(in.Logs())+"-"+auditSuffix))
	}, flags...)
}

// Own starts a cluster with Tideline for the specs of one container, which change what other specs rely on. It is called in
// BeforeAll, and ends with the container. The operator may be given further flags.
func Own(ctx context.Context, o cluster.Options, flags ...string) *testutil.Installation {
	ginkgo.GinkgoHelper()
	return own(ctx, o, func(*testutil.Installation) error { return nil }, flags...)
}

// own is [Own]; keep saves what is needed of the logs before they are removed.
func own(
	ctx context.Context, o cluster.Options, keep func(*testutil.Installation) error, flags ...string,
) *testutil.Installation {
	ginkgo.GinkgoHelper()
	o.Log = ginkgo.GinkgoWriter
	in, err := testutil.Start(ctx, o, flags...)
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the cluster starts and the operator runs on it")
	stopAtTheEnd(in, keep)
	return in
}

// Bare starts a cluster without Tideline for the specs of one container, which install it. It is called in BeforeAll, and ends
// with the container.
func Bare(ctx context.Context, o cluster.Options) *testutil.Installation {
	ginkgo.GinkgoHelper()
	o.Log = ginkgo.GinkgoWriter
	in, err := testutil.Prepare(ctx, o)
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the cluster starts")
	stopAtTheEnd(in, func(*testutil.Installation) error { return nil })
	return in
}

// stopAtTheEnd ends an installation with the container that it is for. Logs stay if a spec failed.
func stopAtTheEnd(in *testutil.Installation, keep func(*testutil.Installation) error) {
	ginkgo.GinkgoHelper()
	ginkgo.DeferCleanup(func() {
		gomega.Expect(in.Stop()).To(gomega.Succeed(),
			"no process ended early and the operator's log is clean; the logs are in %s", in.Logs())
		if ginkgo.CurrentSpecReport().Failed() {
			ginkgo.AddReportEntry("The logs of all processes are in " + in.Logs())
			return
		}
		gomega.Expect(errors.Join(keep(in), in.RemoveLogs())).To(gomega.Succeed(), "nothing is left behind")
	})
}

func (s *Suite) start(ctx context.Context, o cluster.Options) ([]byte, error) {
	o.Log = ginkgo.GinkgoWriter
	var flags []string
	if s.configure != nil {
		flag, err := writeConfiguration(s.configure)
		if err != nil {
			return nil, err
		}
		flags = []string{flag}
	}
	var err error
	if s.installation, err = testutil.Start(ctx, o, flags...); err != nil {
		return nil, err
	}
	return json.Marshal(paths{s.installation.Kubeconfig, s.installation.AuditLog})
}

// writeConfiguration writes the default configuration, changed so, into a file that is there as long as the spec, and returns the
// flag that names it.
func writeConfiguration(configure func(*config.Configuration)) (flag string, err error) {
	c := config.DefaultConfiguration()
	configure(c)
	content, err := yaml.Marshal(c)
	if err != nil {
		return "", err
	}
	file := filepath.Join(ginkgo.GinkgoT().TempDir(), "configuration.yaml")
	return "--config=" + file, os.WriteFile(file, content, 0o600)
}

// Reconfigure starts the operator anew with its default configuration, changed so, for specs that are Serial.
func (s *Suite) Reconfigure(ctx context.Context, configure func(*config.Configuration)) {
	ginkgo.GinkgoHelper()
	flag, err := writeConfiguration(configure)
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the configuration is written")
	gomega.Expect(s.installation.StopOperator()).To(gomega.Succeed(), "the operator ends, and its log is clean")
	started := s.installation.Operate(ctx, testutil.OperatorOptions{Args: []string{flag}})
	gomega.Expect(started).To(gomega.Succeed(), "and is started anew")
}

func (s *Suite) join(shared []byte) error {
	var p paths
	if err := json.Unmarshal(shared, &p); err != nil {
		return err
	}
	var err error
	s.World, err = testutil.NewWorld(p.Kubeconfig, p.AuditLog)
	return err
}

// Defaults sets how long specs wait, and how often they look. What is awaited comes within seconds; the machine may do other
// things too.
func Defaults() {
	gomega.SetDefaultEventuallyTimeout(2 * time.Minute)
	gomega.SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	gomega.SetDefaultConsistentlyPollingInterval(200 * time.Millisecond)
}
