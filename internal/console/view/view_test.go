package view

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

func jobIn(phase v1beta1.JobPhase, namespace, name string, place int32, accelerators int64) *v1beta1.ElasticTrainingJob {
	j := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	j.Status.Phase, j.Status.Place, j.Status.Accelerators = phase, place, accelerators
	return j
}

func TestWhoWaitsComesFirstByPlace(t *testing.T) {
	g := NewWithT(t)
	m := &Model{Jobs: []*v1beta1.ElasticTrainingJob{
		jobIn(v1beta1.PhaseSucceeded, "a", "over", 0, 0), jobIn(v1beta1.PhaseRunning, "a", "small", 0, 1),
		jobIn(v1beta1.PhaseRunning, "a", "large", 0, 9), jobIn(v1beta1.PhasePending, "a", "unplaced", 0, 0),
		jobIn(v1beta1.PhasePending, "a", "second", 2, 0), jobIn("", "a", "first", 1, 0),
		jobIn(v1beta1.PhasePending, "b", "other", 1, 0),
	}}
	list := NewJobs(m, &Sight{Jobs: map[string]bool{"a": true}}, "", -5, time.Now())
	var names []string
	for _, row := range list.Rows {
		names = append(names, row.Name)
	}
	g.Expect(names).To(Equal([]string{"first", "second", "unplaced", "large", "small", "over"}))
	g.Expect(list.Others).To(Equal(1))
	g.Expect(list.Pages).To(Equal(Paging{Page: 1, Pages: 1}))
	g.Expect(NewJobs(m, &Sight{AllJobs: true}, "running", 1, time.Now()).Shown).To(Equal(2))
}

func TestPagesStayWithinTheirList(t *testing.T) {
	g := NewWithT(t)
	p, from, to := pagingOf(9, 250, 100, "?page=")
	g.Expect(p).To(Equal(Paging{Page: 3, Pages: 3, Previous: "?page=2"}))
	g.Expect([]int{from, to}).To(Equal([]int{200, 250}))
}

func TestSentencesNameNobodyElse(t *testing.T) {
	g := NewWithT(t)
	s := &Sight{Jobs: map[string]bool{"mine": true}, Merges: map[string]bool{"mine": true}}
	for said, told := range map[string]string{
		"needs 4 of nvidia.com/gpu, 3/8 workers":  "needs 4 of nvidia.com/gpu, 3/8 workers",
		`Back-off pulling image "some/image:2.3"`: `Back-off pulling image "some/image:2.3"`,
		"waits for theirs/llama and mine/bert":    "waits for a job of another namespace and mine/bert",
		"(theirs/llama.v2), theirs/other: 2 left": "(a job of another namespace), a job of another namespace: 2 left",
	} {
		g.Expect(s.told(said)).To(Equal(told))
	}
	g.Expect((&Sight{AllJobs: true, AllMerges: true}).told("theirs/llama")).To(Equal("theirs/llama"))
}

func TestNodesAreDrawnWithWords(t *testing.T) {
	g := NewWithT(t)
	n := &Node{Name: "n", Total: 4000, Held: []Holding{
		{Job: types.NamespacedName{Namespace: "mine", Name: "bert"}, Accelerators: 1500},
		{Job: types.NamespacedName{Namespace: "theirs", Name: "llama"}, Accelerators: 1000},
		{Job: types.NamespacedName{Namespace: "mine"}, Accelerators: 500},
	}}
	row := drawNode(n, &Sight{Jobs: map[string]bool{"mine": true}, Merges: map[string]bool{"mine": true}})
	g.Expect(row.Words).To(Equal("mine/bert 1.5, others 1.5, 1 of 4 free"))
	g.Expect(len(row.Squares)).To(BeNumerically("<=", 5))
	g.Expect(row.Height).To(Equal(14))

	row = drawNode(&Node{Name: "large", Total: 20_000}, &Sight{})
	g.Expect(row.Squares).To(HaveLen(20))
	g.Expect(row.Squares[16]).To(Equal(Square{X: 0, Y: 15, Class: "free"}), "no screen is too narrow for 16 beside each other")
	g.Expect(row.Height).To(Equal(28))
}

func TestMergesAreInTheirLine(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	merge := func(name string, place int32, age time.Duration) *v1beta1.MergeJob {
		m := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "mine", Name: name}}
		m.Spec.Schedule = &v1beta1.MergeSchedule{Interval: &metav1.Duration{Duration: 10 * time.Hour}}
		m.Status.LastFull = &v1beta1.FullModel{Time: metav1.NewTime(now.Add(-age))}
		if place > 0 {
			m.Status.Position = &place
		}
		return m
	}
	runs := merge("runs", 0, time.Hour)
	runs.Status.Run = &v1beta1.MergeRun{RunTime: &metav1.Time{Time: now}}
	due := merge("due", 0, 9*time.Hour)
	due.Status.DueTime = &metav1.Time{Time: now.Add(time.Hour)}
	hidden, other := merge("hidden", 1, 20*time.Hour), merge("other", 0, 0)
	hidden.Namespace, other.Status.Pool = "theirs", "night"
	m := &Model{Merges: []*v1beta1.MergeJob{
		merge("fresh", 0, 0), due, merge("second", 3, 11*time.Hour), merge("first", 2, 0), runs, hidden, other,
	}}
	page := NewMerges(m, &Sight{Merges: map[string]bool{"mine": true}}, "tideline-merge", 1, now)
	var names, late []string
	for _, row := range page.Rows {
		names = append(names, row.Name)
		if row.Late {
			late = append(late, row.Name+": "+row.Fresh)
		}
	}
	g.Expect(names).To(Equal([]string{"runs", "first", "second", "due", "fresh"}))
	g.Expect(late).To(Equal([]string{"second: 11 h 0 min old, merged again at 10 h 0 min"}))
	g.Expect(page.Others).To(Equal(1))
	g.Expect([]string{page.Figures[0].Value, page.Figures[1].Value, page.Figures[2].Value}).To(Equal([]string{"3", "1", "2"}),
		"sums are of all namespaces")
	g.Expect(NewMerges(m, &Sight{}, "absent", 1, now).Pool).To(Equal("night"), "the first by name")
	g.Expect(NewMerges(&Model{}, &Sight{}, "", 1, now).Pages.Pages).To(Equal(1))
}

func TestDataSetsOfATeam(t *testing.T) {
	g := NewWithT(t)
	p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: "ads"}}
	p.Status.DataSets = []v1beta1.DataSetStatus{
		{Name: "clicks", Version: "2026-11", Jobs: 3, Space: ptr.To(resource.MustParse("2Ti"))}, {Name: "images", Version: "v3"},
	}
	team := NewTeam(p, &Model{}, &Sight{Profiles: true}, config.DefaultConfiguration(), 1, time.Now())
	g.Expect(team.Data).To(Equal([]Figure{
		{Label: "clicks 2026-11", Value: "3", Note: "trainings use it; its claims have 2Ti"},
		{Label: "images v3", Value: "0", Note: "trainings use it; in an object store"},
	}))
}
