package gang

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// shipped is the configuration that Volcano's Helm chart installs, v1.14.1 and v1.15.1.
const shipped = `actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
`

// bundles keep gangs of others whole.
const bundles = `configurations:
- name: gangpreempt
  arguments: {allowWholeBundle: false}
- name: gangreclaim
  arguments: {allowWholeBundle: "false"}
`

// What config/volcano ships, and other configurations made of it.
func ours(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../config/volcano/volcano-scheduler.conf")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// with is the configuration of config/volcano with other actions, and more text, if any, at its end.
func with(t *testing.T, actions string, more ...string) string {
	t.Helper()
	const line = `actions: "enqueue, allocate, preempt, reclaim, backfill"`
	text := ours(t)
	NewWithT(t).Expect(text).To(ContainSubstring(line), "config/volcano has its actions in one line")
	return strings.Replace(text, line, `actions: "`+actions+`"`, 1) + strings.Join(more, "")
}

const (
	isMissing  = " is missing"
	areMixed   = " are mixed, which Volcano's design rules out"
	pairByTask = `have the line actions: "enqueue, allocate, preempt, reclaim, backfill"`
	pairByGang = `have the line actions: "enqueue, allocate, gangpreempt, gangreclaim, backfill"`
	takesApart = "gangpreempt and gangreclaim take gangs of others apart, because allowWholeBundle is not false"
	keepsWhole = "have the line configurations: [{name: gangpreempt, arguments: {allowWholeBundle: false}}, " +
		"{name: gangreclaim, arguments: {allowWholeBundle: false}}]"
	noShare      = "plugin capacity has no say in gangreclaim, which then takes surplus of queues within their share"
	addCapacity  = "have the line - name: capacity in the tier of - name: gang, instead of proportion"
	overcommits  = "plugin overcommit counts surplus as used, which keeps large gangs Pending"
	noOvercommit = "remove the line - name: overcommit"
	noSay        = "plugin gang has no say in preemption"
	lastWord     = "have the lines - name: gang and enablePreemptable: true as the last plugin of its tier"
	knowsNone    = "Volcano knows no action "
	refuses      = " and refuses the configuration: "
)

func TestWhatIsInTheWayOfSurplus(t *testing.T) {
	for name, c := range map[string]struct {
		conf string
		want []Obstacle
	}{
		"ours": {ours(t), nil},
		"as shipped": {shipped, []Obstacle{
			{"action preempt" + isMissing, pairByTask}, {"action reclaim" + isMissing, pairByTask},
			{noSay, lastWord}, {overcommits, noOvercommit},
		}},
		"one of a pair": {with(t, "enqueue, allocate, preempt, backfill"), []Obstacle{{"action reclaim" + isMissing, pairByTask}}},
		"the other of a pair": {
			with(t, "enqueue, allocate, reclaim, backfill"), []Obstacle{{"action preempt" + isMissing, pairByTask}},
		},
		"gangs":                 {with(t, "enqueue, allocate, gangpreempt, gangreclaim, backfill", bundles), nil},
		"gangs, without spaces": {with(t, "enqueue,allocate,gangpreempt,gangreclaim,backfill", bundles), nil},
		"one of the pair of gangs": {
			with(t, "enqueue, allocate, gangpreempt, backfill", bundles), []Obstacle{{"action gangreclaim" + isMissing, pairByGang}},
		},
		"the other of the pair of gangs": {
			with(t, "enqueue, allocate, gangreclaim, backfill", bundles), []Obstacle{{"action gangpreempt" + isMissing, pairByGang}},
		},
		"both pairs": {with(t, "enqueue, allocate, preempt, reclaim, gangpreempt, gangreclaim, backfill", bundles), []Obstacle{
			{"actions preempt, reclaim, gangpreempt, gangreclaim" + areMixed, pairByTask},
		}},
		"half of each": {with(t, "enqueue, allocate, gangpreempt, reclaim, backfill", bundles), []Obstacle{
			{"actions reclaim, gangpreempt" + areMixed, pairByTask},
		}},
		"what the pair of gangs needs is not asked for in a mix": {
			with(t, "enqueue, allocate, preempt, gangreclaim, backfill"),
			[]Obstacle{{"actions preempt, gangreclaim" + areMixed, pairByTask}},
		},
		"the names of Volcano's design": {with(t, "enqueue, allocate, gangPreempt, gangReclaim, backfill", bundles), []Obstacle{
			{knowsNone + "gangPreempt" + refuses + "it is gangpreempt", pairByGang},
			{knowsNone + "gangReclaim" + refuses + "it is gangreclaim", pairByGang},
		}},
		"a comma is missing": {with(t, "enqueue, allocate, preempt reclaim, backfill"), []Obstacle{
			{`Volcano knows no action "preempt reclaim" and refuses the configuration: names are separated by commas`, pairByTask},
		}},
		"preempt before allocate": {with(t, "enqueue, preempt, reclaim, allocate, backfill"), []Obstacle{
			{"preempt stands before allocate, which then never places a gang where there is room", pairByTask},
		}},
		"reclaim before allocate": {with(t, "enqueue, reclaim, allocate, preempt, backfill"), nil},
		"gangs before allocate": {with(t, "enqueue, gangpreempt, gangreclaim, allocate, backfill", bundles), []Obstacle{
			{"gangpreempt and gangreclaim stand before allocate, and evict again while those leave that they evicted", pairByGang},
		}},
		"gangs of others": {with(t, "enqueue, allocate, gangpreempt, gangreclaim, backfill"), []Obstacle{{takesApart, keepsWhole}}},
		"gangs of others, by one of both": {
			with(t, "enqueue, allocate, gangpreempt, gangreclaim, backfill", strings.Replace(bundles, `"false"`, "true", 1)),
			[]Obstacle{{takesApart, keepsWhole}},
		},
		"the pair of gangs in the shipped configuration": {
			strings.Replace(shipped, "allocate", "allocate, gangpreempt, gangreclaim", 1) + bundles,
			[]Obstacle{{noShare, addCapacity}, {overcommits, noOvercommit}},
		},
		"shares in the second tier": {
			strings.Replace(strings.Replace(with(t, "enqueue, allocate, gangpreempt, gangreclaim, backfill", bundles),
				"  - name: capacity\n", "", 1), "  - name: drf\n", "  - name: capacity\n  - name: drf\n", 1),
			[]Obstacle{{noShare, addCapacity}},
		},
		"the pair of gangs asks nobody who preempts": {
			strings.Replace(with(t, "enqueue, allocate, gangpreempt, gangreclaim, backfill", bundles),
				"enablePreemptable: true", "enablePreemptable: false", 1), nil,
		},
		"shared GPUs with a weight": {
			strings.Replace(ours(t), "  - name: deviceshare\n", "  - name: deviceshare\n    arguments:\n"+
				"      deviceshare.VGPUEnable: true\n      deviceshare.ScheduleWeight: 10\n", 1),
			[]Obstacle{{"plugin deviceshare weighs nodes by their shared GPUs, and the scheduler of Volcano 1.15 then panics while a " +
				"gang waits for a part of a GPU", "remove the line deviceshare.ScheduleWeight"}},
		},
		"the pair of gangs without gang": {
			strings.Replace(with(t, "enqueue, allocate, gangpreempt, gangreclaim, backfill", bundles),
				"  - name: gang\n    enablePreemptable: true\n", "", 1),
			[]Obstacle{{"plugin gang" + isMissing, "have the line - name: gang"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, data := NewWithT(t), map[string]string{schedulerConfKey: c.conf}
			g.Expect(ExamineSchedulerConf(data)).To(Equal(c.want))
			said := ListObstacles(data)
			g.Expect(said).To(HaveLen(len(c.want)))
			for i, o := range c.want {
				g.Expect(said[i]).To(Equal(o.What))
			}
		})
	}
}

func TestActionsOfGangsComeWithVolcano115(t *testing.T) {
	for actions, want := range map[string]bool{
		"enqueue, allocate, preempt, reclaim":         false,
		"enqueue, allocate, gangpreempt, gangreclaim": true,
		"enqueue, allocate, preempt, gangreclaim":     true,
	} {
		data := map[string]string{schedulerConfKey: with(t, actions)}
		NewWithT(t).Expect(EvictsForGangs(data)).To(Equal(want), actions)
	}
	NewWithT(t).Expect(EvictsForGangs(nil)).To(BeFalse())
}

func TestNoConfigurationToRead(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ListObstacles(nil)).To(
		ConsistOf("there is no ConfigMap volcano-system/volcano-scheduler-configmap with key volcano-scheduler.conf"))
	g.Expect(ListObstacles(map[string]string{schedulerConfKey: "tiers: 7"})).To(
		ConsistOf(HavePrefix("the configuration cannot be read")))
}
