package merge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// pool is a scenario with a pool of merges: a Queue, nodes, and a bucket.
type pool struct {
	*testutil.Scenario
	*testutil.Models
	queue string
}

// newPool makes a pool of one of the names in pools, with a node for each number of GPUs.
func newPool(queue string, gpus ...int64) *pool {
	GinkgoHelper()
	Expect(pools).To(ContainElement(queue), "the operator's configuration allows the pool")
	s := world.NewScenario(GinkgoT(), queue, gpus...)
	s.NewQueueNamed(queue, schedulingv1beta1.QueueSpec{Weight: 1})
	return &pool{Scenario: s, Models: s.NewModels(given.Store), queue: queue}
}

// merge begins a merge of 4 pods with a GPU each in this pool.
func (p *pool) merge(name string) *testutil.MergeBuilder {
	return testutil.Merge(name).In(p.Namespace).Nodes(p.Namespace).Pool(p.queue).Pods(4, 4).GPUs(1).Store(p.Of(name)).Backoff(1)
}

// run has the programs of merges do their work until ctx ends: they write the full model and end as soon as all pods run.
func (p *pool) run(ctx context.Context) {
	var wait sync.WaitGroup
	wait.Go(func() {
		defer GinkgoRecover()
		for ctx.Err() == nil {
			merges := &v1beta1.MergeJobList{}
			if err := p.Client.List(ctx, merges, client.InNamespace(p.Namespace)); err == nil {
				for i := range merges.Items {
					p.finish(ctx, &merges.Items[i])
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	DeferCleanup(wait.Wait)
}

func (p *pool) finish(ctx context.Context, job *v1beta1.MergeJob) {
	if run := job.Status.Run; run == nil || run.RunTime == nil || run.Outcome != "" {
		return
	}
	if err := p.Complete(ctx, job); err != nil {
		return // The bucket is gone with the test.
	}
	_ = p.ExitMerge(ctx, job.Name)
}

// running counts the pods of a merge that run.
func (p *pool) running(name string) func() (int, error) {
	return func() (int, error) {
		pods, err := p.MergePods(p.Context(), name)
		n := 0
		for i := range pods {
			if pods[i].Status.Phase == corev1.PodRunning {
				n++
			}
		}
		return n, err
	}
}

// watch looks at the pool again and again until the spec ends.
type watch struct {
	mu sync.Mutex
	// asked lists the merges in the order in which their gangs came.
	asked []string
	// most is the largest number of gangs that waited for a place at one moment.
	most int
	// idle is the longest that there was room for the head of the line without its being placed.
	idle time.Duration
}

// observe watches a pool of so many slots of which each merge takes size.
func (p *pool) observe(ctx context.Context, slots, size int) *watch {
	w := &watch{}
	var wait sync.WaitGroup
	wait.Go(func() {
		defer GinkgoRecover()
		gangs, known := &testutil.Gangs{}, map[types.UID]bool{}
		var since time.Time
		for ctx.Err() == nil {
			if err := p.look(ctx, w, gangs, known, &since, slots-size); err != nil && ctx.Err() == nil {
				Fail(fmt.Sprintf("cannot look at the pool: %v", err))
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	DeferCleanup(wait.Wait)
	return w
}

func (p *pool) look(
	ctx context.Context, w *watch, gangs *testutil.Gangs, known map[types.UID]bool, since *time.Time, full int,
) error {
	groups, pods := &schedulingv1beta1.PodGroupList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{groups, pods} {
		if err := p.Client.List(ctx, list, client.InNamespace(p.Namespace)); err != nil {
			return err
		}
	}
	used := 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName != "" && (pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodPending) {
			used++
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(groups.Items, func(a, b schedulingv1beta1.PodGroup) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for i := range groups.Items {
		if g := &groups.Items[i]; !known[g.UID] {
			known[g.UID] = true
			w.asked = append(w.asked, metav1.GetControllerOf(g).Name)
		}
	}
	waiting := gangs.Waiting(groups.Items, pods.Items)
	w.most = max(w.most, waiting)
	if waiting == 0 || used > full {
		*since = time.Time{}
		return nil
	}
	if since.IsZero() {
		*since = time.Now()
	}
	w.idle = max(w.idle, time.Since(*since))
	return nil
}

// saw returns what was seen until now.
func (w *watch) saw() (asked []string, most int, idle time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked), w.most, w.idle
}

// haveSummary matches a merge that shows these words under PHASE.
func haveSummary(words string) OmegaMatcher { return HaveField("Status.Summary", words) }

// havePosition matches a merge with that place in the line.
func havePosition(n int32) OmegaMatcher { return HaveField("Status.Position", HaveValue(Equal(n))) }

func havePhase(phase v1beta1.MergePhase) OmegaMatcher { return HaveField("Status.Phase", phase) }

func haveReason(reason string) OmegaMatcher { return HaveField("Status.Reason", reason) }

// haveMerged matches a merge that has merged at least once.
func haveMerged() OmegaMatcher {
	return HaveField("Status.History", ContainElement(HaveField("Outcome", v1beta1.OutcomeMerged)))
}

// haveCondition matches a merge with a condition that is True.
func haveCondition(kind string) OmegaMatcher {
	return HaveField("Status.Conditions", ContainElement(And(HaveField("Type", kind), HaveField("Status", metav1.ConditionTrue))))
}
