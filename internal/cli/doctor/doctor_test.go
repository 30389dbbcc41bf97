package doctor

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tideline-io/tideline/internal/platform/priorityclass"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// healthy are the facts of a cluster that is set up.
func healthy() Facts {
	f := Facts{
		Namespace: rbac.Namespace,
		Server:    "v1.37.2", VolcanoImage: "volcanosh/vc-scheduler:v1.15.1", VolcanoWebhooks: 1,
		Scheduler: &Replicas{1, 1},
		Queues:    map[string]string{"default": "Open", "tideline-merge": "Open"}, Classes: map[string]priorityclass.Class{},
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
	wrong, err := PrintFindings(&b, ExamineFacts(f, config.DefaultConfiguration()))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return b.String(), wrong
}

func TestWhatOthersWroteSteersNoTerminal(t *testing.T) {
	var said strings.Builder
	wrong, err := PrintFindings(&said, []Finding{{What: "a\nok    \x1b[2Jforged", Do: "b\rc", Manifest: "kind: A\nname: b\n"}})
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
	f.SchedulerObstacles = gang.ExamineSchedulerConf(map[string]string{"volcano-scheduler.conf": string(shipped)})
	text, _ := screen(t, f)
	g.Expect(string(page)).To(ContainSubstring("$ bin/tideline doctor\n" + text + "$ echo $?\n1\n"))
}

// The pool that merges name by default is installed by config/pool, and what the doctor prints for others is the same but for its
// name.
func TestPoolIsThatOfTheConfiguration(t *testing.T) {
	g := NewWithT(t)
	installed, err := os.ReadFile("../../../config/pool/queue.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	pools := config.DefaultConfiguration().Merges.Pools
	g.Expect(pools).To(HaveLen(1))
	g.Expect(gang.PoolManifest(pools[0])).To(MatchYAML(installed))
}

func TestDefaultPoolComesByItself(t *testing.T) {
	f := healthy()
	delete(f.Queues, "tideline-merge")
	text, wrong := screen(t, f)
	NewWithT(t).Expect(wrong).To(BeZero())
	NewWithT(t).Expect(text).To(ContainSubstring(
		"OK    There is no Queue tideline-merge yet, the pool of merges: the operator creates it with the first MergeJob.\n"))
}

func TestPoolThatOthersMustCreate(t *testing.T) {
	g := NewWithT(t)
	f := healthy()
	cfg := config.DefaultConfiguration()
	cfg.Merges.Pools = []string{"merge-gpu"}
	var b strings.Builder
	_, err := PrintFindings(&b, ExamineFacts(f, cfg))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.String()).To(ContainSubstring(
		"WRONG There is no Queue merge-gpu, a pool of merges as configured (merges.pools).\n" +
			"      -> Apply what follows (kubectl apply -f FILE), or take it out of merges.pools:\n" +
			"---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata:\n  name: merge-gpu\nspec:\n" +
			"  reclaimable: false\n  weight: 1\n"))
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
		"scheduler of no replica": {
			func(f *Facts) { f.Scheduler.Ready = 0 },
			"Volcano's scheduler does not run: Deployment volcano-system/volcano-scheduler has 0 of 1 replicas ready.",
		},
		"scheduler that judges no new pod": {
			func(f *Facts) {
				f.Waiting = Waiting{Pods: 4, Unjudged: 2, Oldest: 61 * time.Second, Silence: 70 * time.Second}
			},
			"does not act: 4 pods wait for it, and it has said nothing about 2 of them, the oldest created 1m1s ago.",
		},
		"scheduler that went silent": {
			func(f *Facts) { f.Waiting = Waiting{Pods: 1, Silence: 3 * time.Minute} },
			"does not act: 1 pod waits for it, and it has judged none of them for 3m0s.",
		},
		"rights of a local setup": {
			func(f *Facts) { f.Local, f.Operator, f.Leader, f.Denied = true, nil, "host_1", []string{"create pods"} },
			"You, as whom make run would run the operator, may not: create pods.",
		},
		"nobody runs the operator of a local setup": {
			func(f *Facts) { f.Local, f.Operator, f.LeaseSilence = true, nil, ptr.To(time.Hour) }, "Start it: make run.",
		},
		"operator outside has ended": {
			func(f *Facts) { f.Local, f.Operator, f.Leader = true, nil, "" }, "No operator leads: the last one ended 2s ago (Lease ",
		},
		"two operators": {
			func(f *Facts) { f.Leader, f.OtherLeader = "pod_1", "host_1" },
			"Two operators act at the same time: pod_1 by Lease tideline-system/tideline.tideline.io, and host_1 by Lease default/",
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
			f.SchedulerObstacles = gang.ExamineSchedulerConf(map[string]string{"volcano-scheduler.conf": other})
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
	g.Expect(text).To(And(ContainSubstring("WARN  Jobs get no owner, their owners and ServiceAccounts are not checked"),
		HaveSuffix("\n1 of 13 checks gave a warning (WARN): it may be as you want it.\nThe cluster is set up for Tideline.\n")))
}

// What could not be seen is not called set up.
func TestAnUnknownIsNotSetUp(t *testing.T) {
	f := healthy()
	f.Scheduler, f.Waiting = nil, Waiting{}
	text, wrong := screen(t, f)
	g := NewWithT(t)
	g.Expect(wrong).To(BeZero(), text)
	g.Expect(text).To(HaveSuffix(
		"\n1 of 13 checks could not be made (?).\nApart from that the cluster is set up for Tideline.\n"))
}

// An operator may run beside the cluster, as by `make run`, and without a Lease.
func TestOperatorWithoutDeploymentOrLeaseIsNoFault(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Facts)
		says string
	}{
		"process": {
			func(f *Facts) { f.Operator, f.Leader = nil, "host_1" }, "OK    An operator outside the cluster leads (host_1).",
		},
		"process, no Lease": {
			func(f *Facts) { f.Operator, f.LeaseSilence = nil, nil }, "?     Whether an operator runs: there is no Deployment",
		},
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

// What Volcano says of a gang that waits, and the pods that it places, are its signs of life.
func TestWaitingPodsTellWhetherTheSchedulerActs(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	pod := func(group string, created time.Duration, edit ...func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", CreationTimestamp: ago(created),
			Annotations: map[string]string{"scheduling.k8s.io/group-name": group}}}
		p.Spec.SchedulerName = "volcano"
		for _, e := range edit {
			e(&p)
		}
		return p
	}
	placed := func(since time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.NodeName = "gpu-0"
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, LastTransitionTime: ago(since)}}
		}
	}
	key := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: "ads", Name: name} }
	for name, c := range map[string]struct {
		pods  []corev1.Pod
		words map[client.ObjectKey]gang.Word
		want  Waiting
		level Level
	}{
		"nothing waits": {pods: []corev1.Pod{pod("a", time.Hour, placed(time.Hour))}, level: Unknown},
		"judged a while ago": {
			pods:  []corev1.Pod{pod("a", time.Hour)},
			words: map[client.ObjectKey]gang.Word{key("a"): {At: now.Add(-50 * time.Second), Waits: true}},
			want:  Waiting{Pods: 1, Silence: 50 * time.Second}, level: OK,
		},
		"never judged": {
			pods:  []corev1.Pod{pod("a", time.Minute), pod("b", 40*time.Second)},
			words: map[client.ObjectKey]gang.Word{key("a"): {Waits: true}},
			want:  Waiting{Pods: 2, Unjudged: 2, Oldest: time.Minute, Silence: time.Minute}, level: Wrong,
		},
		"just created": {
			pods: []corev1.Pod{pod("a", 3*time.Second)},
			want: Waiting{Pods: 1, Unjudged: 1, Oldest: 3 * time.Second, Silence: 3 * time.Second}, level: Unknown,
		},
		"silent since": {
			pods: []corev1.Pod{pod("a", time.Hour), pod("b", time.Hour, placed(20*time.Minute))},
			words: map[client.ObjectKey]gang.Word{
				key("a"): {At: now.Add(-10 * time.Minute), Waits: true}, key("b"): {At: now.Add(-time.Hour)},
			},
			want: Waiting{Pods: 1, Silence: 10 * time.Minute}, level: Wrong,
		},
		"surplus waits, of which Volcano says nothing": {
			pods:  []corev1.Pod{pod("a-surplus", time.Hour)},
			words: map[client.ObjectKey]gang.Word{key("a-surplus"): {At: now.Add(-time.Hour)}}, level: Unknown,
		},
		"of others": {
			pods: []corev1.Pod{
				pod("a", time.Hour, func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }),
				pod("a", time.Hour, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
				pod("a", time.Hour, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} }),
			}, level: Unknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			have := waiting(c.pods, c.words, now)
			g.Expect(have).To(Equal(c.want))
			g.Expect(schedulerLives(Facts{Waiting: have}).Level).To(Equal(c.level))
		})
	}
}

// Without a Deployment, webhooks and a ServiceAccount of the operator, its rights are those of the kubeconfig.
func TestLocalSetupIsKnown(t *testing.T) {
	g := NewWithT(t)
	asked := ""
	allow := func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		if self, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok {
			asked, self.Status.Allowed = "yourself", true
		}
		return nil
	}
	renewed := metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: rbac.Lease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("host_1"), RenewTime: &renewed}}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(lease).
		WithInterceptorFuncs(interceptor.Funcs{Create: allow}).Build()
	f := Facts{Namespace: rbac.Namespace}
	g.Expect(gatherOwnWebhooks(t.Context(), c, &f)).To(Succeed())
	g.Expect(gatherOperator(t.Context(), c, &f)).To(Succeed())
	g.Expect(gatherDenied(t.Context(), c, &f)).To(Succeed())
	g.Expect(f.Local).To(BeTrue())
	g.Expect(asked).To(Equal("yourself"))
	g.Expect(f.Denied).To(BeEmpty())
	g.Expect(operator(f).What).To(Equal("An operator outside the cluster leads (host_1)."))
	g.Expect(permissions(f).Level).To(Equal(OK))
}

func TestFindingsForPrograms(t *testing.T) {
	g := NewWithT(t)
	var output cli.Output
	g.Expect(output.Set("json")).To(Succeed())
	var said strings.Builder
	g.Expect(tell(&said, []Finding{{Level: Warn, What: "a"}, {Level: Unknown, What: "b"}}, output)).To(Succeed())
	g.Expect(said.String()).To(MatchJSON(`{"findings": [{"level": "WARN", "what": "a"}, {"level": "?", "what": "b"}]}`))
	g.Expect(tell(&said, []Finding{{What: "c", Do: "mend"}}, output)).NotTo(Succeed())
}
