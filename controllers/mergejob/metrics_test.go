package mergejob

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// at is when scrapes are.
var at = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(at.Add(-d)) }

// served are the metrics of an operator in a registry that holds them to what they say they are; elected is nil for one that
// stands by.
func served(t *testing.T, elected <-chan struct{}, jobs ...*v1beta1.MergeJob) (*metrics, *prometheus.Registry) {
	t.Helper()
	store, registry := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc), prometheus.NewPedanticRegistry()
	for _, job := range jobs {
		NewWithT(t).Expect(store.Add(job)).To(Succeed())
	}
	m := newMetrics(func() time.Time { return at }, store, elected)
	NewWithT(t).Expect(registry.Register(m)).To(Succeed())
	return m, registry
}

func leads() <-chan struct{} {
	elected := make(chan struct{})
	close(elected)
	return elected
}

// asking is the head of a line.
func asking() *v1beta1.MergeJob {
	job := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr", CreationTimestamp: ago(99 * time.Hour)}}
	job.Spec.Schedule = &v1beta1.MergeSchedule{Interval: &metav1.Duration{Duration: 10 * time.Hour}}
	job.Status = v1beta1.MergeJobStatus{
		Pool: "merges", Position: ptr.To[int32](1), LastFull: &v1beta1.FullModel{Name: "m", Time: ago(11 * time.Hour)},
		NewestIncrementTime: ptr.To(ago(5 * time.Minute)), Run: &v1beta1.MergeRun{ID: "r", Attempt: 1, AskTime: ago(2 * time.Minute)},
	}
	return job
}

// all have every metric of ours.
func all(t *testing.T) *prometheus.Registry {
	t.Helper()
	m, registry := served(t, leads(), asking())
	merged := asking()
	merged.Status.QueueTime = ptr.To(ago(time.Hour))
	running := merged.Status.DeepCopy()
	running.Run.RunTime = ptr.To(ago(0))
	m.countTransition(merged, running)
	ended := running.DeepCopy()
	ended.History = []v1beta1.MergeResult{{Run: "r", Outcome: v1beta1.OutcomeMerged, StartTime: ptr.To(ago(0)), EndTime: ago(0)}}
	m.countTransition(&v1beta1.MergeJob{}, ended)
	m.observeDecision(time.Millisecond)
	return registry
}

func TestMetricsKeepPrometheusRules(t *testing.T) {
	g := NewWithT(t)
	problems, err := testutil.GatherAndLint(all(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
}

func TestMetricsAgreeWithTheirPage(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/metrics.md")
	g.Expect(err).NotTo(HaveOccurred())
	page := string(content)
	families, err := all(t).Gather()
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, family := range families {
		name, labels := family.GetName(), []string{}
		names = append(names, name)
		for _, pair := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, pair.GetName())
		}
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| ([a-z]+) \\| ([^|]*)\\| [^|]{20,} \\|$").
			FindStringSubmatch(page)
		g.Expect(row).NotTo(BeNil(), name)
		g.Expect(row[1]).To(Equal(strings.ToLower(family.GetType().String())), name)
		g.Expect(regexp.MustCompile("[a-z_]+").FindAllString(row[2], -1)).To(ConsistOf(labels), name)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(tideline_merge_[a-z_]+)` \\|").FindAllStringSubmatch(page, -1) {
		g.Expect(names).To(ContainElement(row[1]), "only what there is")
	}
	_, values, found := strings.Cut(page, "\n`outcome` is how the run ended: ")
	g.Expect(found).To(BeTrue())
	values, _, _ = strings.Cut(values, ". ")
	for _, outcome := range []v1beta1.MergeOutcome{
		v1beta1.OutcomeMerged, v1beta1.OutcomeTimedOut, v1beta1.OutcomeFailed, v1beta1.OutcomeSuspended,
	} {
		g.Expect(values).To(ContainSubstring("`" + string(outcome) + "`"))
	}
}

func TestAgesGrowByThemselves(t *testing.T) {
	_, registry := served(t, leads(), asking())
	NewWithT(t).Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP tideline_merge_full_model_age_seconds Age of the newest full model, or of the MergeJob before the first one.
# TYPE tideline_merge_full_model_age_seconds gauge
tideline_merge_full_model_age_seconds{name="ctr",namespace="ads",pool="merges"} 39600
# HELP tideline_merge_head_wait_seconds How long the head of the line has been asking for its place; absent if no merge asks.
# TYPE tideline_merge_head_wait_seconds gauge
tideline_merge_head_wait_seconds{pool="merges"} 120
# HELP tideline_merge_interval_seconds Age of the full model at which the next merge is due; absent without a schedule.
# TYPE tideline_merge_interval_seconds gauge
tideline_merge_interval_seconds{name="ctr",namespace="ads",pool="merges"} 36000
# HELP tideline_merge_line_length Merges that wait for their turn.
# TYPE tideline_merge_line_length gauge
tideline_merge_line_length{pool="merges"} 1
# HELP tideline_merge_newest_increment_age_seconds Age of the newest increment, by the store's clock; absent before the first one.
# TYPE tideline_merge_newest_increment_age_seconds gauge
tideline_merge_newest_increment_age_seconds{name="ctr",namespace="ads",pool="merges"} 300
`), "tideline_merge_full_model_age_seconds", "tideline_merge_head_wait_seconds", "tideline_merge_interval_seconds",
		"tideline_merge_line_length", "tideline_merge_newest_increment_age_seconds")).To(Succeed())
}

func TestMergesThatAwaitApprovalAreCounted(t *testing.T) {
	held := asking()
	held.Spec.Pool, held.Status.Run, held.Status.Position = "merges", nil, nil
	held.Status.Reason = v1beta1.ReasonAwaitingApproval
	_, registry := served(t, leads(), held)
	NewWithT(t).Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP tideline_merge_awaiting_approval Merges that are due and wait for approval of their tier.
# TYPE tideline_merge_awaiting_approval gauge
tideline_merge_awaiting_approval{pool="merges"} 1
`), "tideline_merge_awaiting_approval")).To(Succeed())
}

func TestWhoStandsByTellsNoAges(t *testing.T) {
	_, registry := served(t, nil, asking())
	n, err := testutil.GatherAndCount(registry, "tideline_merge_full_model_age_seconds", "tideline_merge_line_length")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(n).To(BeZero(), "sums over all replicas are right")
}
