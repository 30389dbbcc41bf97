// Package report shows what becomes of CostReports, on a real API server, with the operator as a real process and a real server
// for mail. What ran and what was used is in the operator's ledger, as if it had recorded it.
package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/sizing"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/post"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestReport(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Reports")
}

// held is what somebody's pods held: GPUs for hours of the day before yesterday.
type held struct {
	team, user, kind, task string
	pods, hours            int
	// used is the share of the time in which GPUs were in use; negative for unknown.
	used    float64
	outcome ledger.Outcome
}

// hostile is a user as a bad neighbour would have it.
const hostile = `=HYPERLINK("http://evil.example","<script>alert(1)</script>")`

// week is what was held. A GPU costs 10 an hour: 1,000 + 240 + 100 + 60 are 1,400.
var week = []held{
	{"ads", "alice", v1beta1.ElasticTrainingJobKind, "ctr", 10, 10, 0.5, ledger.Succeeded},
	{"ads", "bob", v1beta1.ElasticTrainingJobKind, "ranker", 2, 12, 0.9, ledger.Failed},
	{"search", hostile, "Pod", "<b>notebook</b>", 1, 10, -1, ledger.Deleted},
	{"search", "", "Job", "nobodys", 1, 6, -1, ledger.Succeeded},
}

// shared is the cluster of all specs. Each container starts the operator with a ledger of its own.
var shared = suite.New(cluster.Options{GPUNodes: 1}).MustUse("patch costreports/status.tideline.io")

// fixture is what the specs of a container share.
type fixture struct {
	*testutil.Installation

	post *post.Server
	// file is the ledger's, configuration the operator's, and metrics the address at which it serves reports and metrics.
	file, configuration, metrics string
	// day is the midnight with which the day began on which all ran, and until the end of the report's window.
	day, until time.Time
}

// begin starts the operator with the past in its ledger, for the specs of a container. Settings are further lines of its
// configuration.
func begin(ctx context.Context, past func(*fixture) []ledger.Entries, settings ...string) *fixture {
	GinkgoHelper()
	midnight := time.Now().UTC().Truncate(24 * time.Hour)
	folder := GinkgoT().TempDir()
	f := &fixture{
		Installation: shared.Installation(), file: filepath.Join(folder, "ledger.db"),
		configuration: filepath.Join(folder, "configuration.yaml"), day: midnight.AddDate(0, 0, -2), until: midnight,
	}
	Expect(f.record(ctx, past(f))).To(Succeed(), "the ledger knows the past")
	var err error
	f.post, err = post.Serve(ctx, post.Options{})
	Expect(err).NotTo(HaveOccurred(), "there is a server for mail")
	DeferCleanup(func() { f.post.Close() })
	f.metrics, err = testutil.FreeAddress()
	Expect(err).NotTo(HaveOccurred(), "there is a port for metrics")
	Expect(client.IgnoreAlreadyExists(f.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "asker"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: rbac.Namespace, Name: rbac.ServiceAccount}},
	}))).To(Succeed(), "the operator may ask who somebody is, as component monitoring lets it")
	Expect(os.WriteFile(f.configuration, fmt.Appendf(nil, `apiVersion: config.tideline.io/v1alpha1
kind: Configuration
ledger: {file: %q, retentionDays: 0}
reports: {mailTimeoutSeconds: 10, mailRetrySeconds: 2}
%s
`, f.file, strings.Join(settings, "\n")), 0o600)).To(Succeed())
	Expect(f.StopOperator()).To(Succeed(), "the operator of the suite has done nothing wrong")
	Expect(f.Operate(ctx, testutil.OperatorOptions{Args: []string{
		"--config=" + f.configuration, "--metrics-bind-address=" + f.metrics, "--metrics-secure=true",
	}})).To(Succeed(), "the operator runs")
	DeferCleanup(f.end)
	return f
}

// end ends the operator, and leaves nothing to the next one.
func (f *fixture) end(ctx context.Context) {
	GinkgoHelper()
	Expect(f.StopOperator()).To(Succeed(), "the operator's log is clean")
	Expect(f.Client.DeleteAllOf(ctx, &v1beta1.CostReport{})).To(Succeed())
	for _, o := range []client.Object{configMap("prices", "", ""), configMap("people", "", ""), smtp("smtp", nil)} {
		Expect(client.IgnoreNotFound(f.Client.Delete(ctx, o))).To(Succeed())
	}
}

// record writes the past to the ledger, as the operator would have.
func (f *fixture) record(ctx context.Context, past []ledger.Entries) error {
	l, err := ledger.Open(ctx, ledger.Options{File: f.file})
	if err != nil {
		return err
	}
	for _, entries := range past {
		if err := l.RecordEntries(ctx, entries); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	return l.Close()
}

// lastWeek is what was held in the past.
func lastWeek(f *fixture) []ledger.Entries {
	var entries ledger.Entries
	for i, h := range week {
		length := time.Duration(h.hours) * time.Hour
		for n := range h.pods {
			entries.Stays = append(entries.Stays, ledger.Stay{
				Pod: ledger.Pod{
					UID: fmt.Sprintf("%d-%d", i, n), Namespace: h.team, Name: fmt.Sprintf("%d-worker-%d", i, n), Node: "gpu-0",
					Profile: h.team, User: h.user, Kind: h.kind, Task: h.task, Run: fmt.Sprintf("run-%d", i), Role: v1beta1.PartCore,
					Model: "A100", Resources: ledger.Resources{"nvidia.com/gpu": 1000},
				},
				Begin: f.day, End: f.day.Add(length), Final: true, Outcome: h.outcome,
			})
		}
		if h.used < 0 {
			continue
		}
		for _, role := range []sizing.Role{sizing.Master, sizing.Worker} {
			part := ledger.Part{Namespace: h.team, Kind: h.kind, Task: h.task, Role: string(role)}
			entries.PartDays = append(entries.PartDays, inUse(part, f.day, length, h.used))
		}
	}
	return []ledger.Entries{entries}
}

// inUse is what Prometheus said about a part on a day: for so long, accelerators were in use for a share of the time.
func inUse(part ledger.Part, day time.Time, length time.Duration, share float64) ledger.PartDay {
	GinkgoHelper()
	seconds := int64(length / time.Second)
	used, err := json.Marshal(sizing.Usage{RunSeconds: seconds, SeenSeconds: seconds, Accelerators: sizing.AcceleratorUsage{
		HeldSeconds: seconds, ActiveMilliseconds: int64(share * float64(seconds) * 1000),
	}})
	Expect(err).NotTo(HaveOccurred())
	return ledger.PartDay{Part: part, Day: day, SeenSeconds: seconds, Content: string(used)}
}

// configMap is one of the operator's own namespace.
func configMap(name, key, content string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: name}, Data: map[string]string{key: content},
	}
}

// smtp is a Secret that names a server for mail.
func smtp(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: name}, Type: "tideline.io/smtp", Data: data,
	}
}

// prices are a price list.
var prices = priceList("2020-01-01", "10")

// priceList has what an hour of a GPU costs from days on.
func priceList(daysAndPrices ...string) string {
	list := []byte("currency: EUR\nprices:\n")
	for i := 0; i < len(daysAndPrices); i += 2 {
		list = fmt.Appendf(list, `- validFrom: %q
  cpuCoreHour: "0"
  memoryGiBHour: "0"
  accelerators: [{resource: nvidia.com/gpu, hourly: %q}]
`, daysAndPrices[i], daysAndPrices[i+1])
	}
	return string(list)
}

// report is one that is made of the past. By its schedule one was due as the past ended, and none is for months, so that it makes
// no difference when these tests run.
func (f *fixture) report(name string, change ...func(*v1beta1.CostReport)) *v1beta1.CostReport {
	r := &v1beta1.CostReport{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			v1beta1.AnnotationReportUntil: f.until.Format(time.RFC3339),
		}},
		Spec: v1beta1.CostReportSpec{
			PriceListRef: v1beta1.ObjectRef{Name: "prices"},
			Schedule:     fmt.Sprintf("0 0 %d %d *", f.until.Day(), f.until.Month()),
		},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

// over has a report be of a window of that length.
func over(window time.Duration) func(*v1beta1.CostReport) {
	return func(r *v1beta1.CostReport) { r.Spec.Window = &metav1.Duration{Duration: window} }
}
