package doctor

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tideline-io/tideline/internal/platform/priorityclass"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// healthy are the facts of a cluster that is set up.
func healthy() Facts {
	f := Facts{
		Namespace: rbac.Namespace,
		Server:    "v1.37.2", VolcanoImage: "volcanosh/vc-scheduler:v1.15.1", VolcanoWebhooks: 1,
		Queues: map[string]string{"default": "Open", "tideline-merge": "Open"}, Classes: map[string]priorityclass.Class{},
		Operator: &Replicas{1, 1}, LeaseSilence: ptr.To(2 * time.Second),
	}
	for _, t := range config.DefaultTiers() {
		f.Classes[t.ClassName()] = priorityclass.Class{Value: t.Priority, Policy: corev1.PreemptLowerPriority}
		f.Classes[t.SurplusClassName()] = priorityclass.Class{Value: t.SurplusPriority, Policy: corev1.PreemptNever}
	}
	f.Classes[config.HandoverClass] = priorityclass.Class{Value: 1_000_000_000, Policy: corev1.PreemptNever}
	return f
}

func screen(t *testing.T, f Facts) (string, int) {
	t.Helper()
	var b strings.Builder
	wrong, err := Print(&b, Examine(f, config.Defaults()))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return b.String(), wrong
}

func TestWhatOthersWroteSteersNoTerminal(t *testing.T) {
	var said strings.Builder
	wrong, err := Print(&said, []Finding{{What: "a\nok    \x1b[2Jforged", Do: "b\rc", Manifest: "kind: A\nname: b\n"}})
	if err != nil || wrong != 1 {
		t.Errorf("%d (%v)", wrong, err)
	}
	if want := "WRONG a ok    \\x1b[2Jforged\n      -> b c\nkind: A\nname: b\n"; !strings.HasPrefix(said.String(), want) {
		t.Errorf("it says\n%q, not\n%q", &said, want)
	}
}

func TestHealthyClusterIsOneScreenOfOK(t *testing.T) {
	g := NewWithT(t)
	text, wrong := screen(t, healthy())
	g.Expect(wrong).To(BeZero(), text)
	g.Expect(text).NotTo(ContainSubstring("->"))
	g.Expect(strings.Count(text, "\n")).To(BeNumerically("<", 24))
}

// The page on Volcano shows the screen of a cluster with Volcano as it is shipped.
func TestPageShowsTheScreen(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../../docs/volcano.md")
	g.Expect(err).NotTo(HaveOccurred())
	shipped, err := os.ReadFile("../../../test/testutil/testdata/volcano-shipped.conf")
	g.Expect(err).NotTo(HaveOccurred())
	f := healthy()
	f.VolcanoImage = "docker.io/volcanosh/vc-scheduler:v1.15.1"
	f.Queues["root"] = "Open"
	f.SchedulerObstacles = gang.Examine(map[string]string{"volcano-scheduler.conf": string(shipped)})
	text, _ := screen(t, f)
	g.Expect(string(page)).To(ContainSubstring("$ bin/tideline doctor\n" + text + "$ echo $?\n1\n"))
}

// The pool that merges name by default is installed by config/pool, and what the doctor prints for others is the same but for its
// name.
func TestPoolIsThatOfTheConfiguration(t *testing.T) {
	g := NewWithT(t)
	installed, err := os.ReadFile("../../../config/pool/queue.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	pools := config.Defaults().Merges.Pools
	g.Expect(pools).To(HaveLen(1))
	g.Expect(gang.PoolManifest(pools[0])).To(MatchYAML(installed))
}

func TestEachFindingSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Facts)
		says string
	}{
		"kinds": {
			func(f *Facts) { f.MissingKinds = []string{"PodGroup (scheduling.volcano.sh/v1beta1)"} }, "does not serve: PodGroup",
		},
		"old volcano": {func(f *Facts) { f.VolcanoImage = "volcanosh/vc-scheduler:v1.9.0" }, "older than v1.14.0"},
		"configuration": {func(f *Facts) {
			f.SchedulerObstacles = []gang.Obstacle{{What: "action preempt is missing", Do: "have one line"}, {Do: "have one line"}}
		}, "does not let surplus give way as it should: action preempt is missing"},
		"actions that Volcano does not have yet": {
			func(f *Facts) { f.EvictsForGangs, f.VolcanoImage = true, "volcanosh/vc-scheduler:v1.14.1" },
			"WRONG Volcano's scheduler is volcanosh/vc-scheduler:v1.14.1, and gangpreempt and gangreclaim come with v1.15.0: it refuses " +
				"the configuration and goes on with the one before, or does not start.\n      -> Upgrade Volcano to v1.15.0 or later, or " +
				"have preempt, reclaim instead of gangpreempt, gangreclaim in ConfigMap volcano-system/volcano-scheduler-configmap.\n",
		},
		"webhooks": {func(f *Facts) { f.VolcanoWebhooks = 0 }, "No webhook of Volcano"},
		"untrusted webhooks": {
			func(f *Facts) { f.UntrustedWebhooks = []string{"tideline-mutating-webhook"} }, "have no CA: tideline-mutating-webhook",
		},
		"no queue":     {func(f *Facts) { f.Queues = nil }, "There is no Volcano Queue"},
		"closed queue": {func(f *Facts) { f.Queues["team"] = "Closed" }, "1 of 3 Queues are not open: team (Closed)"},
		"unseen queue": {func(f *Facts) { f.Queues["team"] = "" }, "team (state unknown)"},
		"closed pool":  {func(f *Facts) { f.Queues["tideline-merge"] = "Closed" }, "not open: tideline-merge (Closed)"},
		"no pool": {
			func(f *Facts) { delete(f.Queues, "tideline-merge") },
			"WRONG There is no Queue tideline-merge, a pool of merges as configured (merges.pools).\n" +
				"      -> Apply what follows (kubectl apply -f FILE), or take it out of merges.pools:\n" +
				"---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata:\n  name: tideline-merge\nspec:\n" +
				"  reclaimable: false\n  weight: 1\n",
		},
		"no class": {
			func(f *Facts) { delete(f.Classes, "tideline-exploratory") },
			"PriorityClasses of tier exploratory are not as configured: tideline-exploratory is missing.",
		},
		"wrong class": {
			func(f *Facts) {
				f.Classes["tideline-exploratory"] = priorityclass.Class{Value: 5, Policy: corev1.PreemptLowerPriority}
			},
			"tideline-exploratory is 5 PreemptLowerPriority and must be 1000 PreemptLowerPriority.",
		},
		"no operator": {
			func(f *Facts) { f.Operator.Ready = 0 }, "Deployment tideline-system/tideline-controller-manager has 0 of 1 replicas ready",
		},
		"operator scaled to nothing": {func(f *Facts) { f.Operator = &Replicas{} }, "has 0 of 0 replicas ready"},
		"one operator of two":        {func(f *Facts) { f.Operator.Wanted = 2 }, "has 1 of 2 replicas ready"},
		"nobody leads": {
			func(f *Facts) { f.LeaseSilence = ptr.To(2*time.Minute + time.Millisecond) },
			"No operator leads: Lease tideline-system/tideline.tideline.io was last renewed 2m0s ago.",
		},
		"the process is gone": {
			func(f *Facts) { f.Operator, f.LeaseSilence = nil, ptr.To(time.Hour) }, "No operator leads",
		},
		"rights": {func(f *Facts) { f.Denied = []string{"create pods"} }, "may not: create pods"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := healthy()
			c.edit(&f)
			text, wrong := screen(t, f)
			g.Expect(wrong).To(Equal(1), text)
			g.Expect(text).To(ContainSubstring(c.says))
			g.Expect(text).To(ContainSubstring("-> "))
		})
	}
}

// What is to be done is said once for all that it mends.
func TestConfigurationIsMendedInFewLines(t *testing.T) {
	for name, c := range map[string]struct{ actions, found, do string }{
		"both pairs": {
			"enqueue, allocate, preempt, gangpreempt, gangreclaim, reclaim, backfill",
			"actions preempt, reclaim, gangpreempt, gangreclaim are mixed, which Volcano's design rules out.",
			`have the line actions: "enqueue, allocate, preempt, reclaim, backfill"`,
		},
		"neither": {
			"enqueue, allocate, backfill", "action preempt is missing; action reclaim is missing.",
			`have the line actions: "enqueue, allocate, preempt, reclaim, backfill"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), healthy()
			conf, err := os.ReadFile("../../../config/volcano/volcano-scheduler.conf")
			g.Expect(err).NotTo(HaveOccurred())
			other := strings.Replace(string(conf), "enqueue, allocate, preempt, reclaim, backfill", c.actions, 1)
			f.SchedulerObstacles = gang.Examine(map[string]string{"volcano-scheduler.conf": other})
			text, wrong := screen(t, f)
			g.Expect(wrong).To(Equal(1), text)
			g.Expect(text).To(ContainSubstring("WRONG Volcano's configuration does not let surplus give way as it should: " + c.found +
				"\n      -> Apply config/volcano, or change ConfigMap volcano-system/volcano-scheduler-configmap: " + c.do +
				". Until then surplus leaves on the operator's word, when a gang has starved.\n"))
		})
	}
}

func TestActionsOfGangsAreFineWithVolcano115(t *testing.T) {
	for _, image := range []string{"volcanosh/vc-scheduler:v1.15.1", "volcanosh/vc-scheduler:latest", ""} {
		f := healthy()
		f.EvictsForGangs, f.VolcanoImage = true, image
		text, wrong := screen(t, f)
		NewWithT(t).Expect(wrong).To(BeZero(), text)
	}
}

func TestNoWebhooksAreNoFaultAndAreSaid(t *testing.T) {
	f := healthy()
	f.MissingWebhooks = []string{"tideline-mutating-webhook"}
	text, wrong := screen(t, f)
	g := NewWithT(t)
	g.Expect(wrong).To(BeZero(), text)
	g.Expect(text).To(ContainSubstring("Owners are neither set nor checked"))
}

// An operator may run beside the cluster, as by `make run`, and without a Lease.
func TestOperatorWithoutDeploymentOrLeaseIsNoFault(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Facts)
		says string
	}{
		"process":              {func(f *Facts) { f.Operator = nil }, "An operator leads; it is of no Deployment"},
		"process, no Lease":    {func(f *Facts) { f.Operator, f.LeaseSilence = nil, nil }, "Whether an operator runs is not known"},
		"no leader election":   {func(f *Facts) { f.LeaseSilence = nil }, "The operator is ready (1 of 1 replicas)"},
		"leader has just left": {func(f *Facts) { f.LeaseSilence = ptr.To(30 * time.Second) }, "The operator is ready"},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), healthy()
			c.edit(&f)
			text, wrong := screen(t, f)
			g.Expect(wrong).To(BeZero(), text)
			g.Expect(text).To(ContainSubstring(c.says))
		})
	}
}

func TestVolcanoOfUnknownVersionIsNoFault(t *testing.T) {
	for _, image := range []string{"", "mirror/vc-scheduler:latest"} {
		f := healthy()
		f.VolcanoImage = image
		_, wrong := screen(t, f)
		NewWithT(t).Expect(wrong).To(BeZero())
	}
}
