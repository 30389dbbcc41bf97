package resourcequotaprofile

import (
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestMetricsOfProfiles(t *testing.T) {
	g := NewWithT(t)
	store, elected := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc), make(chan struct{})
	p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}
	p.Spec.Queue.Capability = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("16")}
	p.Status = v1beta1.ResourceQuotaProfileStatus{
		Used:       corev1.ResourceList{"cpu": resource.MustParse("1500m")},
		Tiers:      []v1beta1.UsageStatus{{Name: "exploratory", Held: "7.5"}},
		OverBudget: []v1beta1.OverBudget{{User: "alice"}},
	}
	g.Expect(store.Add(p)).To(Succeed())
	m := &metrics{profiles: store, trainings: trainings(g), merges: merges(g), elected: elected}
	g.Expect(testutil.CollectAndCount(m)).To(BeZero(), "it stands by")
	close(elected)
	g.Expect(testutil.CollectAndCompare(m, strings.NewReader(`
# HELP tideline_profile_accelerators Accelerators that pods of a tier hold in a profile's namespaces.
# TYPE tideline_profile_accelerators gauge
tideline_profile_accelerators{profile="ads",tier="exploratory"} 7.5
# HELP tideline_profile_jobs Trainings and merges of a profile that run, or wait for what the reason in their status says.
# TYPE tideline_profile_jobs gauge
tideline_profile_jobs{profile="(default)",reason="",state="running"} 1
tideline_profile_jobs{profile="(default)",reason="Unschedulable",state="waiting"} 1
tideline_profile_jobs{profile="ads",reason="",state="running"} 0
tideline_profile_jobs{profile="ads",reason="AwaitingApproval",state="waiting"} 2
tideline_profile_jobs{profile="ads",reason="InLine",state="waiting"} 1
tideline_profile_jobs{profile="ads",reason="QuotaExceeded",state="waiting"} 2
# HELP tideline_profile_resources What a profile's queue has and uses, in cores, bytes and devices; kind is used, deserved, `+
		`capability, borrowed or lent.
# TYPE tideline_profile_resources gauge
tideline_profile_resources{kind="capability",profile="ads",resource="nvidia.com/gpu"} 16
tideline_profile_resources{kind="used",profile="ads",resource="cpu"} 1.5
# HELP tideline_profile_users_over_budget Users of a profile who have used up a budget.
# TYPE tideline_profile_users_over_budget gauge
tideline_profile_users_over_budget{profile="ads"} 1
`))).To(Succeed())
}

// trainings are some that run, wait, or do neither.
func trainings(g Gomega) toolscache.Store {
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	for name, st := range map[string]v1beta1.ElasticTrainingJobStatus{
		"a": {Profile: "ads", Phase: v1beta1.PhasePending, Reason: v1beta1.ReasonQuotaExceeded},
		"b": {Profile: "ads", Phase: v1beta1.PhasePending, Reason: v1beta1.ReasonQuotaExceeded},
		"c": {Profile: "ads", Phase: v1beta1.PhasePending, Reason: v1beta1.ReasonAwaitingApproval},
		"d": {Profile: "ads", Phase: v1beta1.PhaseSucceeded, Reason: v1beta1.ReasonCompleted},
		"e": {Profile: v1beta1.DefaultProfile, Phase: v1beta1.PhasePending, Reason: v1beta1.ReasonUnschedulable},
		"f": {Profile: v1beta1.DefaultProfile, Phase: v1beta1.PhaseRunning, Reason: v1beta1.ReasonTraining},
	} {
		job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: st}
		g.Expect(store.Add(job)).To(Succeed())
	}
	return store
}

// merges are some that wait, or need not run.
func merges(g Gomega) toolscache.Store {
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	for name, st := range map[string]v1beta1.MergeJobStatus{
		"a": {Profile: "ads", Phase: v1beta1.MergeQueued, Reason: v1beta1.ReasonInLine},
		"b": {Profile: "ads", Phase: v1beta1.MergeWaiting, Reason: v1beta1.ReasonAwaitingApproval},
		"c": {Profile: "ads", Phase: v1beta1.MergeWaiting, Reason: v1beta1.ReasonNotDue},
	} {
		g.Expect(store.Add(&v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: st})).To(Succeed())
	}
	return store
}

func TestMetricsAgreeWithTheirPage(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/metrics.md")
	g.Expect(err).NotTo(HaveOccurred())
	descriptions := make(chan *prometheus.Desc, 10)
	(&metrics{}).Describe(descriptions)
	close(descriptions)
	told := map[string]string{}
	for d := range descriptions {
		name := regexp.MustCompile(`fqName: "([a-z_]+)".*variableLabels: \{([a-z,]*)\}`).FindStringSubmatch(d.String())
		g.Expect(name).To(HaveLen(3), d.String())
		told[name[1]] = name[2]
	}
	explained := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| `(tideline_profile_[a-z_]+)` \\| gauge \\| ([^|]*)\\| [^|]{20,} \\|$")
	for _, row := range rows.FindAllStringSubmatch(string(content), -1) {
		explained[row[1]] = strings.Join(regexp.MustCompile("[a-z_]+").FindAllString(row[2], -1), ",")
	}
	g.Expect(explained).To(Equal(told))
}
