package doctor

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/moment"
)

// schedulerDeployment is where Volcano's installation runs its scheduler.
var schedulerDeployment = client.ObjectKey{Namespace: gang.SchedulerConfigMap.Namespace, Name: "volcano-scheduler"}

const (
	// judgedWithin is how soon Volcano, which looks once a second, has judged a new pod.
	judgedWithin = 30 * time.Second
	// saidWithin is how often Volcano at least says again that a gang waits: about once a minute.
	saidWithin = 2 * time.Minute
)

// Waiting are the pods that wait for Volcano's scheduler, and when it last did something.
type Waiting struct {
	// Pods is how many of them have no node and no scheduling gate, surplus apart, about which Volcano says nothing.
	Pods int
	// Unjudged is how many of these the scheduler has said nothing about; Oldest is the age of the oldest of them.
	Unjudged int
	Oldest   time.Duration
	// Silence is how long ago the scheduler last placed a pod or judged a gang, or how long the oldest of the pods has waited,
	// whichever is shorter.
	Silence time.Duration
}

// pods says how many wait: "1 pod waits", "3 pods wait".
func (w Waiting) pods() string {
	if w.Pods == 1 {
		return "1 pod waits"
	}
	return fmt.Sprintf("%d pods wait", w.Pods)
}

// schedulerLives judges whether Volcano's scheduler does its work, by its Deployment and by the pods that wait for it.
func schedulerLives(f Facts) Finding {
	do := fmt.Sprintf("See why: kubectl describe --namespace %s deployment,pods, and the log of its pod. Outside a Deployment, see "+
		"whether the process vc-scheduler runs.", schedulerDeployment.Namespace)
	w := f.Waiting
	switch {
	case f.Scheduler != nil && f.Scheduler.Ready == 0:
		return Finding{
			What: fmt.Sprintf("Volcano's scheduler does not run: Deployment %s has 0 of %d replicas ready. No pod of a job is placed.",
				schedulerDeployment, f.Scheduler.Wanted), Do: do,
		}
	case w.Unjudged > 0 && w.Oldest > judgedWithin:
		return Finding{
			What: fmt.Sprintf("Volcano's scheduler does not act: %s for it, and it has said nothing about %d of them, the "+
				"oldest created %s ago.", w.pods(), w.Unjudged, w.Oldest.Round(time.Second)), Do: do,
		}
	case w.Pods > 0 && w.Silence > saidWithin:
		return Finding{
			What: fmt.Sprintf("Volcano's scheduler does not act: %s for it, and it has judged none of them for %s.", w.pods(),
				w.Silence.Round(time.Second)), Do: do,
		}
	case w.Pods > 0 && w.Unjudged == w.Pods:
		return Finding{Level: Unknown, What: fmt.Sprintf("Whether Volcano's scheduler acts: %s for it, the oldest created "+
			"%s ago, and it has judged none yet. Ask again in a minute.", w.pods(), w.Oldest.Round(time.Second))}
	case w.Pods > 0:
		return Finding{Level: OK, What: fmt.Sprintf("Volcano's scheduler acts: %s, and it last judged one %s ago.", w.pods(),
			w.Silence.Round(time.Second))}
	case f.Scheduler != nil:
		return Finding{Level: OK, What: fmt.Sprintf("Volcano's scheduler runs (%d of %d replicas).", f.Scheduler.Ready,
			f.Scheduler.Wanted)}
	}
	return Finding{Level: Unknown, What: fmt.Sprintf("Whether Volcano's scheduler runs: there is no Deployment %s, and no pod "+
		"waits for it.", schedulerDeployment)}
}

// gatherScheduler reads Volcano's Deployment, the pods that wait for it, and what it said of their gangs.
func gatherScheduler(ctx context.Context, c client.Client, f *Facts) error {
	deployment := &appsv1.Deployment{}
	switch err := c.Get(ctx, schedulerDeployment, deployment); {
	case err == nil:
		f.Scheduler = &Replicas{Wanted: ptr.Deref(deployment.Spec.Replicas, 1), Ready: deployment.Status.ReadyReplicas}
		if containers := deployment.Spec.Template.Spec.Containers; len(containers) > 0 {
			f.VolcanoImage = containers[0].Image
		}
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read Deployment %s: %w", schedulerDeployment, err)
	}
	groups := gang.NewPodGroupList()
	if err := c.List(ctx, groups); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list PodGroups: %w", err)
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	f.Waiting = waiting(pods.Items, gang.LastWords(groups), time.Now())
	return nil
}

// waiting finds the pods that wait for Volcano, and its last sign of life.
func waiting(pods []corev1.Pod, said map[client.ObjectKey]gang.Word, now time.Time) Waiting {
	var w Waiting
	var first, sign time.Time
	for _, word := range said {
		sign = moment.LaterOf(sign, word.At)
	}
	for i := range pods {
		p := &pods[i]
		if p.Spec.SchedulerName != gang.SchedulerName {
			continue
		}
		word, grouped := said[client.ObjectKey{Namespace: p.Namespace, Name: gang.GroupOf(p)}]
		judged := !word.At.Before(p.CreationTimestamp.Time)
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				sign, judged = moment.LaterOf(sign, c.LastTransitionTime.Time), true
			}
		}
		ended := p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
		if ended || grouped && !word.Waits || p.Spec.NodeName != "" || len(p.Spec.SchedulingGates) > 0 || p.DeletionTimestamp != nil {
			continue
		}
		w.Pods++
		if first.IsZero() || p.CreationTimestamp.Time.Before(first) {
			first = p.CreationTimestamp.Time
		}
		if !judged {
			w.Unjudged++
			w.Oldest = max(w.Oldest, now.Sub(p.CreationTimestamp.Time))
		}
	}
	if w.Pods > 0 {
		w.Silence = now.Sub(moment.LaterOf(first, sign))
	}
	return w
}
