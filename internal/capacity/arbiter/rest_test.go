package arbiter

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/dutycycle"
)

func TestEvaluationsTakeAPartOfAProcessor(t *testing.T) {
	for name, c := range map[string]struct {
		rest          dutycycle.Rest
		after, atMost time.Duration
	}{
		"who waits: one second of ten":            {restOfAnswers, 4500 * time.Millisecond, 5 * time.Second},
		"who may grow and runs: one second of 50": {restOfGrowth, 24500 * time.Millisecond, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, done := pace{}, now.Add(time.Second/2)
			p.noteWork(now, done)
			g.Expect(p.remaining(c.rest, done)).To(BeZero(), "the first evaluation may have been held up")
			p.noteWork(now, done)
			g.Expect(p.remaining(c.rest, done)).To(Equal(c.after))
			g.Expect(p.remaining(c.rest, done.Add(2*time.Second))).To(Equal(c.after - 2*time.Second))
			p.noteWork(now, now.Add(time.Hour))
			g.Expect(p.remaining(c.rest, now.Add(time.Hour))).To(Equal(c.after), "the lesser of two counts")
			p.noteWork(now, now.Add(time.Hour))
			g.Expect(p.remaining(c.rest, now.Add(time.Hour))).To(Equal(c.atMost), "it never rests for longer")
		})
	}
}

func TestWhoWaitsEndsTheRestOfThoseWhoMayGrow(t *testing.T) {
	key := types.NamespacedName{Namespace: "team", Name: "ctr"}
	running := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "1"}}
	running.Spec.Elasticity.Growth.Mode = v1beta1.GrowthOnlyIfPays
	running.Status.Attempt, running.Status.RunningSince = &v1beta1.AttemptStatus{MinReplicas: 2}, &metav1.Time{Time: now}
	for name, c := range map[string]struct {
		happens func(*Arbiter)
		due     bool
	}{
		"a job that runs and may grow rests": {func(*Arbiter) {}, false},
		"a job that has just begun to run, and may grow for the first time": {func(a *Arbiter) {
			other := running.DeepCopy()
			other.Name, other.UID = "cvr", "2"
			a.mirror.putJob(types.NamespacedName{Namespace: "team", Name: "cvr"}, other)
		}, true},
		"a job that runs on and reports progress": {func(a *Arbiter) { a.mirror.putJob(key, running.DeepCopy()) }, false},
		"a job that is about to create its pods": {func(a *Arbiter) {
			starting := running.DeepCopy()
			starting.Status.RunningSince = nil
			a.mirror.putJob(key, starting)
		}, true},
		"a job that was stopped whole": {func(a *Arbiter) {
			stopped := running.DeepCopy()
			stopped.Status.Preemption = &v1beta1.PreemptionStatus{}
			a.mirror.putJob(key, stopped)
		}, true},
		"a worker without a node": {func(a *Arbiter) {
			worker := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "ctr-worker-2"}}
			worker.OwnerReferences = []metav1.OwnerReference{v1beta1.ControllerReference(running, "x")}
			a.mirror.putPod(types.NamespacedName{Namespace: "team", Name: worker.Name}, worker)
		}, true},
		"a pod of others that fits nowhere": {func(a *Arbiter) {
			a.mirror.putPod(types.NamespacedName{Namespace: "team", Name: "other"}, &corev1.Pod{})
		}, false},
		"a merge in line": {func(a *Arbiter) {
			a.mirror.putMerge(key, &v1beta1.MergeJob{Status: v1beta1.MergeJobStatus{Phase: v1beta1.MergeQueued}})
		}, true},
		"whoever was promised room": {func(a *Arbiter) {
			made := capacity.Promise{For: key, Victims: []capacity.Surplus{{}}}
			a.promises = map[string]capacity.Promises{"default": {Standing: []capacity.Promise{made}}}
		}, true},
		"its rest is over":         {func(a *Arbiter) { a.pace.ended = now.Add(-time.Minute) }, true},
		"the caches are not whole": {func(a *Arbiter) { a.watching = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := New(nil, &config.Configuration{}, nil, nil, logr.Discard())
			a.watching = []func() bool{func() bool { return true }}
			a.mirror.putJob(key, running)
			a.pace = pace{took: [2]time.Duration{time.Second, time.Second}, ended: now.Add(-20 * time.Second), begun: a.mirror.begun}
			c.happens(a)
			isDue := a.restLeft(now) <= 0
			g.Expect(isDue).To(Equal(c.due))
		})
	}
}

// Nothing is read of caches that are not whole: everything would be in memory twice.
func TestNothingIsDecidedBeforeTheWatchesHaveSeenAll(t *testing.T) {
	g := NewWithT(t)
	a := New(nil, &config.Configuration{}, nil, nil, logr.Discard())
	whole := false
	a.watching = []func() bool{func() bool { return whole }}
	ended, end := context.WithCancel(t.Context())
	end()
	_, _, err := a.mirrored(ended)
	g.Expect(err).To(MatchError(context.Canceled))

	whole = true
	m, done, err := a.mirrored(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m).To(BeIdenticalTo(a.mirror))
	done()
}
