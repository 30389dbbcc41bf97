package whatif

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/quota"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// monday is when the past begins.
var monday = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func hour(n int) time.Time { return monday.Add(time.Duration(n) * time.Hour) }

// ran is a run in a namespace of so many workers of one GPU that came, started and ended at hours.
func ran(namespace, name string, workers, came, started, ended int) Run {
	r := Run{
		Namespace: namespace, Name: name, User: "alice", Tier: "exploratory", Queue: namespace, Profile: namespace,
		Asked: hour(came), Came: hour(came), Started: hour(started), Ended: hour(ended), Known: true,
	}
	for range workers {
		r.Core = append(r.Core, admission.MilliAmounts{gpu: 1000, corev1.ResourceMemory: 1 << 30})
	}
	return r
}

// ofJob has a run be an attempt of a training.
func ofJob(job string, r Run) Run {
	r.Job = job
	return r
}

// ofTeam is a profile of a namespace of its name.
func ofTeam(name string, change ...func(*v1beta1.ResourceQuotaProfileSpec)) *v1beta1.ResourceQuotaProfile {
	p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(monday)}}
	p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": name}
	p.Spec.Queue.Weight = 1
	for _, f := range change {
		f(&p.Spec)
	}
	return p
}

func gpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{gpu: *resource.NewQuantity(n, resource.DecimalSI)}
}

func perUser(n int64) func(*v1beta1.ResourceQuotaProfileSpec) {
	return func(spec *v1beta1.ResourceQuotaProfileSpec) {
		spec.Caps = &v1beta1.ProfileCaps{PerUser: []v1beta1.ResourceCap{{Resource: string(gpu), Max: gpus(n)[gpu]}}}
	}
}

func capability(n int64) func(*v1beta1.ResourceQuotaProfileSpec) {
	return func(spec *v1beta1.ResourceQuotaProfileSpec) { spec.Queue.Capability = gpus(n) }
}

func guarantee(n int64) func(*v1beta1.ResourceQuotaProfileSpec) {
	return func(spec *v1beta1.ResourceQuotaProfileSpec) { spec.Queue.Guarantee = gpus(n) }
}

// eight is a cluster with a node of 8 GPUs, and a namespace for each of two teams.
func eight() *Cluster {
	return &Cluster{
		Config: config.DefaultConfiguration(),
		Nodes: []capacity.Node{{Name: "a", Allocatable: capacity.Amounts{
			gpu: 8, corev1.ResourceMemory: 64 << 30, corev1.ResourceCPU: 64000, corev1.ResourcePods: 110,
		}}},
		Namespaces: []quota.Namespace{
			{Name: "ads", Labels: map[string]string{"team": "ads"}}, {Name: "rec", Labels: map[string]string{"team": "rec"}},
		},
	}
}

func TestPlayPast(t *testing.T) {
	never := func() bool { return false }
	for name, c := range map[string]struct {
		runs     []Run
		others   []Other
		profiles []*v1beta1.ResourceQuotaProfile
		queues   []gang.QueueInfo
		waits    map[string][]int // hours, by team
		hours    map[string]float64
		left     map[string]int
	}{
		"as it was": {
			runs:     []Run{ran("ads", "x", 6, 0, 0, 4), ran("rec", "y", 4, 1, 4, 6)},
			profiles: []*v1beta1.ResourceQuotaProfile{ofTeam("ads"), ofTeam("rec")},
			waits:    map[string][]int{"ads": {0}, "rec": {3}}, hours: map[string]float64{"ads": 24, "rec": 8},
		},
		"a cap of a user": {
			runs:     []Run{ran("ads", "x", 2, 0, 0, 4), ran("ads", "y", 2, 1, 1, 3), ran("ads", "z", 2, 2, 2, 3)},
			profiles: []*v1beta1.ResourceQuotaProfile{ofTeam("ads", perUser(4))},
			waits:    map[string][]int{"ads": {0, 0, 1}}, hours: map[string]float64{"ads": 14},
		},
		"a gang that a cap never lets in": {
			runs:     []Run{ran("ads", "x", 5, 0, 0, 4)},
			profiles: []*v1beta1.ResourceQuotaProfile{ofTeam("ads", perUser(4))},
			waits:    map[string][]int{"ads": nil}, hours: map[string]float64{"ads": 0}, left: map[string]int{"ads": 1},
		},
		"a capability": {
			runs:     []Run{ran("ads", "x", 3, 0, 0, 4), ran("ads", "y", 2, 1, 1, 3)},
			profiles: []*v1beta1.ResourceQuotaProfile{ofTeam("ads", capability(4))},
			waits:    map[string][]int{"ads": {0, 3}}, hours: map[string]float64{"ads": 16},
		},
		"the guarantee of another": {
			runs:     []Run{ran("ads", "x", 3, 0, 0, 4), ran("ads", "y", 2, 1, 1, 3)},
			profiles: []*v1beta1.ResourceQuotaProfile{ofTeam("ads"), ofTeam("rec", guarantee(4))},
			waits:    map[string][]int{"ads": {0, 3}}, hours: map[string]float64{"ads": 16},
		},
		"a notebook counts for its user": {
			runs: []Run{ran("ads", "x", 3, 1, 1, 4)},
			others: []Other{{
				Namespace: "ads", User: "alice", Profile: "ads", Node: "a", Holds: admission.MilliAmounts{gpu: 2000},
				Begin: hour(0), End: hour(3),
			}},
			profiles: []*v1beta1.ResourceQuotaProfile{ofTeam("ads", perUser(4))},
			waits:    map[string][]int{"ads": {2}}, hours: map[string]float64{"ads": 9},
		},
		"a namespace without a profile": {
			runs: []Run{ran("lab", "x", 3, 1, 1, 4)}, waits: map[string][]int{"": {0}}, hours: map[string]float64{"": 9},
		},
		"one that still runs holds its room to the end": {
			runs: []Run{
				ran("ads", "x", 6, 0, 0, 4), func() Run {
					r := ran("ads", "y", 4, 1, 20, 24)
					r.Ongoing = true
					return r
				}(),
			},
			profiles: []*v1beta1.ResourceQuotaProfile{ofTeam("ads")},
			waits:    map[string][]int{"ads": {0, 3}}, hours: map[string]float64{"ads": 24 + 80},
		},
		"another attempt of the same training": {
			runs: []Run{
				ran("ads", "other", 6, 0, 0, 4), ofJob("a", ran("ads", "a/1", 4, 1, 1, 3)), ofJob("a", ran("ads", "a/2", 4, 3, 3, 5)),
			},
			profiles: []*v1beta1.ResourceQuotaProfile{ofTeam("ads")},
			waits:    map[string][]int{"ads": {0, 0, 3}}, hours: map[string]float64{"ads": 40},
		},
		"the Queue of somebody else stays as it is": {
			runs:     []Run{ran("ads", "x", 3, 0, 0, 4), ran("ads", "y", 2, 1, 1, 3)},
			profiles: []*v1beta1.ResourceQuotaProfile{ofTeam("ads")}, queues: []gang.QueueInfo{{QueueLimits: gang.QueueLimits{
				Name: "ads", Capability: gpus(4),
			}}},
			waits: map[string][]int{"ads": {0, 3}}, hours: map[string]float64{"ads": 16},
		},
		"a Queue that only a notebook was in": {
			runs: []Run{ran("ads", "x", 3, 1, 1, 4)}, others: []Other{{
				Namespace: "lab", Queue: "gone", Node: "a", Holds: admission.MilliAmounts{gpu: 2000}, Begin: hour(0), End: hour(3),
			}}, profiles: []*v1beta1.ResourceQuotaProfile{ofTeam("ads")},
			waits: map[string][]int{"ads": {0}}, hours: map[string]float64{"ads": 9},
		},
		"resources that no node has": {
			runs: []Run{func() Run {
				r := ran("ads", "x", 1, 0, 0, 4)
				r.Core[0]["example.com/part"] = 500
				return r
			}()}, profiles: []*v1beta1.ResourceQuotaProfile{ofTeam("ads")},
			waits: map[string][]int{"ads": {0}}, hours: map[string]float64{"ads": 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			past := &Past{From: monday, To: hour(24), Runs: c.runs, Others: c.others}
			on := eight()
			on.Queues = c.queues
			var before []*v1beta1.ResourceQuotaProfile
			for _, p := range c.profiles {
				before = append(before, p.DeepCopy())
			}
			all := PlayPast(past, on, c.profiles, never)
			g.Expect(c.profiles).To(Equal(before), "what is of a cache is as it was")
			g.Expect(all).To(HaveLen(len(c.waits)))
			for team, want := range c.waits {
				var hours []int
				for _, w := range all[team].Waits {
					hours = append(hours, int(w.Hours()))
				}
				g.Expect(hours).To(Equal(want), "waits of %q", team)
				g.Expect(all[team].DeviceHours).To(BeNumerically("~", c.hours[team], 0.001), "hours of %q", team)
				g.Expect(all[team].Unstarted).To(HaveLen(c.left[team]), "not begun of %q", team)
			}
		})
	}
	g := NewWithT(t)
	g.Expect(PlayPast(&Past{From: monday, To: hour(24)}, eight(), nil, func() bool { return true })).To(BeNil(), "there is no time")
}

func TestAGangWhoseWorkersDiffer(t *testing.T) {
	g := NewWithT(t)
	r := ran("ads", "x", 3, 0, 0, 4)
	r.Core[1] = admission.MilliAmounts{gpu: 6000}
	r.Model = "A100"
	c := eight()
	c.Nodes[0].Labels = map[string]string{"nvidia.com/gpu.product": "A100"}
	past := &Past{From: monday, To: hour(24), Runs: []Run{r, ran("ads", "y", 1, 0, 0, 1)}}
	all := PlayPast(past, c, nil, func() bool { return false })
	g.Expect(all[""].Waits).To(Equal([]time.Duration{0, 4 * time.Hour}), "8 GPUs in all, on the model on which they ran")
	c.Nodes[0].Labels = nil
	g.Expect(PlayPast(past, c, nil, func() bool { return false })[""].Unstarted).To(HaveLen(1), "there is no such model any more")
}

func TestReplaceProfile(t *testing.T) {
	g := NewWithT(t)
	ads, rec := ofTeam("ads"), ofTeam("rec")
	changed := ofTeam("ads", perUser(1))
	both := []*v1beta1.ResourceQuotaProfile{ads, rec}
	g.Expect(ReplaceProfile(both, changed)).To(Equal([]*v1beta1.ResourceQuotaProfile{changed, rec}))
	fresh := ofTeam("lab")
	fresh.CreationTimestamp = metav1.Time{}
	all := ReplaceProfile(both, fresh)
	g.Expect(all[2].CreationTimestamp.After(monday)).To(BeTrue(), "a new one is the youngest: namespaces stay with the others")
	g.Expect(fresh.CreationTimestamp.IsZero()).To(BeTrue(), "what was given is as it was")
}

// report is of a change of profile ads, which makes its trainings wait.
func report() *Report {
	r := &Report{
		Past:  &Past{From: monday, To: hour(24), KnownSince: monday},
		Nodes: 63, Profile: "ads", Names: true,
		AsIs: map[string]*Outcome{
			"ads": {Waits: []time.Duration{0, 20 * time.Minute}, True: []time.Duration{0, 5 * time.Minute}, DeviceHours: 100.4, Began: 1},
			"rec": {Waits: []time.Duration{3 * time.Hour}, True: []time.Duration{3 * time.Hour}, DeviceHours: 7},
			"":    {},
		},
		Changed: map[string]*Outcome{
			"ads": {Waits: []time.Duration{2 * time.Hour}, Unstarted: make([]time.Duration, 1), DeviceHours: 90, Stopped: 2},
			"rec": {Waits: []time.Duration{0}, DeviceHours: 7}, "": {},
		},
	}
	return r
}

func TestWhatIsSaid(t *testing.T) {
	g := NewWithT(t)
	r := report()
	g.Expect(r.SayChange()).To(Equal([]string{
		"Played again: the last 24h, with 3 attempts of trainings that came and 1 attempt that ran already, on 63 nodes of today. " +
			"The median wait with the profiles as they are is 20m; the true one was 5m.",
		"ads, 2 attempts: median wait 2h instead of less than a minute; 99th percentile beyond the end instead of 20m; cores hold " +
			"90 instead of 100 hours of accelerators; not begun at the end: 1 instead of 0; stopped for others: 2 instead of 0.",
		"rec, 1 attempt: median wait less than a minute instead of 3h; 99th percentile less than a minute instead of 3h; cores hold " +
			"7 hours of accelerators.",
		"namespaces without a profile, 0 attempts: cores hold 0 hours of accelerators.",
		"Left out: surplus, and what weight and deserved decide by it; Volcano's reclaim; budgets; the order within a team; " +
			"approvals; reservations; trainings that had not begun.",
	}))
	r.Names, r.Past.KnownSince = false, hour(12)
	said := r.SayChange()
	g.Expect(said[2]).To(HavePrefix("2 other teams, 1 attempt: median wait less than a minute instead of 3h"), "without names")
	g.Expect(said[3]).To(HaveSuffix(" The ledger knows nothing before 2026-11-23 12:00."))
	delete(r.AsIs, "")
	delete(r.Changed, "")
	alone := r.SayChange()
	g.Expect(alone).To(HaveLen(3), "of one other team nothing is said")
	g.Expect(alone[0]).To(And(ContainSubstring("with 2 attempts of trainings that came and 1 attempt that ran"),
		HaveSuffix("as they are is less than a minute; the true one was less than a minute.")), "also not by what is left of a sum")
	r.AsIs["ads"] = &Outcome{}
	g.Expect(r.SayChange()).To(ConsistOf(HavePrefix("No training of profile ads began to run in the last 24h")))
	r.Names, r.Changed[""] = true, &Outcome{Unstarted: make([]time.Duration, 5)}
	g.Expect(r.SayChange()).To(ContainElement(HavePrefix("namespaces without a profile, 5 attempts: median wait beyond the end")),
		"who has trainings with the change only")
	r.AsIs["rec"].True = nil
	g.Expect(r.SayChange()[0]).To(HaveSuffix("; the true one is not known."))
	r.AsIs = map[string]*Outcome{}
	g.Expect(r.SayChange()).To(Equal([]string{
		"No training began to run in the last 24h, as far as the ledger knows: there is nothing to play again."}))
}

// The API server hands on 4,096 characters of warnings, and cuts each to 256 where there are more.
func TestWhatIsSaidOfManyTeamsIsShort(t *testing.T) {
	g := NewWithT(t)
	r := report()
	for i := range 100 {
		name := fmt.Sprintf("%03d-%s", i, strings.Repeat("x", 59))
		r.AsIs[name] = r.AsIs["ads"]
		r.Changed[name] = &Outcome{
			Waits: []time.Duration{time.Duration(i) * time.Hour}, Unstarted: make([]time.Duration, 1), Stopped: 1,
		}
	}
	said := r.SayChange()
	g.Expect(len(strings.Join(said, ""))).To(BeNumerically("<", 4096))
	g.Expect(said[1]).To(HavePrefix("ads, "))
	g.Expect(said[2]).To(HavePrefix("099-"), "most changes for it")
	g.Expect(said[len(said)-2]).To(ContainSubstring(" other teams, "))
}

func TestParseWindow(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ParseWindow("168h")).To(Equal(168 * time.Hour))
	for _, wrong := range []string{"", "7d", "59m", "745h", "-2h", strings.Repeat("9", 100)} {
		_, err := ParseWindow(wrong)
		g.Expect(err).To(MatchError(ContainSubstring("is not a duration from 1h to 744h: write one like 168h")), wrong)
		g.Expect(len(err.Error())).To(BeNumerically("<", 200))
	}
}

// The sample of the page for administrators is what a report says.
func TestTheSampleOfThePageIsSaid(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../../docs/profiles.md")
	g.Expect(err).NotTo(HaveOccurred())
	waits := func(trainings int, half, most time.Duration) (all []time.Duration) {
		for i := range trainings {
			wait := half
			if i > trainings/2 {
				wait = most
			}
			all = append(all, wait)
		}
		return all
	}
	past := &Past{From: monday, To: monday.AddDate(0, 0, 7), KnownSince: monday}
	truth := waits(412, 4*time.Minute, 3*time.Hour)
	r := &Report{Past: past, Nodes: 63, Profile: "ads", Names: true, AsIs: map[string]*Outcome{
		"ads": {Waits: waits(96, 5*time.Minute, 210*time.Minute), True: truth, DeviceHours: 5210, Began: 9},
		"rec": {Waits: waits(316, 5*time.Minute, 210*time.Minute), DeviceHours: 11780},
	}, Changed: map[string]*Outcome{
		"ads": {Waits: waits(96, 25*time.Minute, 9*time.Hour), DeviceHours: 5210},
		"rec": {Waits: waits(316, 3*time.Minute, 210*time.Minute), DeviceHours: 11780},
	}}
	shown := strings.Join(strings.Fields(string(page)), " ")
	for _, line := range r.SayChange() {
		g.Expect(shown).To(ContainSubstring(line))
		g.Expect(IsAnswer(line)).To(Equal(strings.HasPrefix(line, "Played again")))
	}
}
