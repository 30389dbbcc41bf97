package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// watch has alice create one job after another, and looks at the operator's memory meanwhile.
type watch struct {
	in   *testutil.Installation
	user client.Client
	// limit is what the operator may use, in bytes.
	limit    uint64
	webhooks bool

	stop context.CancelFunc
	done sync.WaitGroup

	// running is held while the operator's memory is looked at, and serving while alice is served.
	running, serving sync.Mutex

	mu sync.Mutex
	// so far, since the last row.
	peak, now      uint64
	slowest, plain time.Duration
	served         int
	err            error
}

// row is what was seen during one wave.
type row struct {
	what string
	flooded
	peak, settled uint64
	// slowest is alice's job that waited longest for its PodGroup and pods, and plain what a client that writes all three itself
	// waited longest: what the API server alone takes.
	slowest, plain time.Duration
	served         int
}

func (w *watch) begin(ctx context.Context) {
	ctx, w.stop = context.WithCancel(ctx)
	w.done.Go(func() {
		defer GinkgoRecover()
		for n := 0; ctx.Err() == nil; n++ {
			w.serving.Lock()
			took, plain, err := w.serveBesidePlain(ctx, n)
			w.serving.Unlock()
			w.note(func() {
				if ctx.Err() == nil {
					w.err = errors.Join(w.err, err)
					w.served, w.slowest, w.plain = w.served+1, max(w.slowest, took), max(w.plain, plain)
				}
			})
			rest(ctx, time.Second)
		}
	})
	w.done.Go(func() {
		for ctx.Err() == nil {
			w.running.Lock()
			now, err := w.in.Operator.Memory()
			ended := w.in.Operator.Ended()
			w.running.Unlock()
			w.note(func() {
				w.now, w.peak = now, max(w.peak, now)
				if w.err == nil {
					w.err = errors.Join(ended, err)
				}
			})
			rest(ctx, 50*time.Millisecond)
		}
	})
}

func (w *watch) end() {
	w.stop()
	w.done.Wait()
}

func (w *watch) note(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
}

func (w *watch) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// serveBesidePlain has alice served once, and write the same herself again and again meanwhile, so that both meet the API server
// when it is slow. It returns how long the job took, and how long her own writes did at most.
func (w *watch) serveBesidePlain(ctx context.Context, n int) (took, plain time.Duration, err error) {
	over, failed := make(chan struct{}), error(nil)
	var beside sync.WaitGroup
	beside.Go(func() {
		for i := 0; ; i++ {
			wrote, wrong := w.writePlain(ctx, fmt.Sprintf("plain-%d-%d", n, i))
			plain, failed = max(plain, wrote), errors.Join(failed, wrong)
			select {
			case <-over:
				return
			case <-time.After(plainEvery):
			}
		}
	})
	took, err = w.serve(ctx, fmt.Sprintf("job-%d", n))
	close(over)
	beside.Wait()
	return took, plain, errors.Join(err, failed)
}

// serve has alice create a job of two workers, and returns how long it took until its PodGroup and its pods were there.
func (w *watch) serve(ctx context.Context, name string) (time.Duration, error) {
	job := testutil.Job(name).In(served).Range(2, 2).Obj()
	if err := w.user.Create(ctx, job); err != nil {
		return 0, err
	}
	took, err := w.awaitServed(ctx, name)
	if err != nil {
		return took, err
	}
	return took, w.user.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// writePlain has alice write a PodGroup and two pods herself, and returns how long it took until they were there.
func (w *watch) writePlain(ctx context.Context, name string) (time.Duration, error) {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: name}}
	group.Spec.MinMember = 2
	objects := []client.Object{group}
	for i := range 2 {
		objects = append(objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: served, Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{v1beta1.LabelJob: name},
				Annotations: map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: name},
			},
			Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{Name: "c", Image: "c:1"}}},
		})
	}
	began := time.Now()
	for _, o := range objects {
		if err := w.user.Create(ctx, o); err != nil {
			return time.Since(began), err
		}
	}
	_, err := w.awaitServed(ctx, name)
	took := time.Since(began)
	for _, o := range objects {
		err = errors.Join(err, client.IgnoreNotFound(w.user.Delete(ctx, o)))
	}
	return took, err
}

// awaitServed waits for the PodGroup of that name and two pods of that job, and tells of one that waits long when which came.
func (w *watch) awaitServed(ctx context.Context, name string) (time.Duration, error) {
	began := time.Now()
	var grouped time.Duration
	for {
		group, pods, err := w.servedOf(ctx, name)
		took := time.Since(began)
		if group && grouped == 0 {
			grouped = took
		}
		if took > soonest && (group && pods == 2 || took > longest) {
			GinkgoWriter.Printf("%s: %s: PodGroup there: %t, after %s; %d pods after %s\n", time.Now().UTC().Format(time.TimeOnly),
				name, group, grouped, pods, took)
		}
		switch {
		case err != nil || group && pods == 2:
			return took, err
		case took > longest:
			return took, fmt.Errorf("%s has no PodGroup and no pods after %s", name, longest)
		}
		rest(ctx, 20*time.Millisecond)
	}
}

func (w *watch) servedOf(ctx context.Context, name string) (group bool, pods int, err error) {
	key := client.ObjectKey{Namespace: served, Name: name}
	if err := w.in.Client.Get(ctx, key, &schedulingv1beta1.PodGroup{}); err != nil {
		return false, 0, client.IgnoreNotFound(err)
	}
	list := &corev1.PodList{}
	err = w.in.Client.List(ctx, list, client.InNamespace(served), client.MatchingLabels{v1beta1.LabelJob: name})
	return true, len(list.Items), err
}

// settle watches on for a while, at least until alice was served once more, and returns what was seen since the last row.
func (w *watch) settle(ctx context.Context, what string, of flooded) row {
	GinkgoHelper()
	var before int
	w.note(func() { before = w.served })
	began := time.Now()
	Eventually(ctx, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.err != nil || w.served > before && time.Since(began) > settling
	}).WithTimeout(2*longest).Should(BeTrue(), "alice is served")
	return w.row(what, of)
}

// row is what was seen since the last one.
func (w *watch) row(what string, of flooded) row {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := row{what: what, flooded: of, peak: w.peak, settled: w.now, slowest: w.slowest, plain: w.plain, served: w.served}
	w.peak, w.slowest, w.plain, w.served = w.now, 0, 0, 0
	GinkgoWriter.Println(table([]row{r}))
	return r
}

// restart kills the operator, starts it beside all that was written, and returns how long it took until it reconciled. Its memory
// is watched from the beginning; alice is served again from then on.
func (w *watch) restart(ctx context.Context) time.Duration {
	GinkgoHelper()
	w.serving.Lock()
	defer w.serving.Unlock()
	w.running.Lock()
	w.in.Operator.Kill()
	began := time.Now()
	err := w.in.Operator.Launch(ctx)
	w.running.Unlock()
	Expect(err).NotTo(HaveOccurred(), "the operator starts")
	w.note(func() { w.peak, w.now = 0, 0 })
	Expect(w.in.Operator.AwaitReady(ctx)).To(Succeed())
	if w.webhooks { // They answer a moment later, once the certificate was read.
		Expect(w.in.AwaitWebhooks(ctx)).To(Succeed())
	}
	return time.Since(began)
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// table is what was measured.
func table(rows []row) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "objects\trefused\tMB written\tMiB at most\tMiB then\talice served\tslowest, s\tplain, s\t  what")
	for _, r := range rows {
		_, _ = fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t  %s\n", r.written, r.refused, r.written*r.size/1_000_000,
			r.peak>>20, r.settled>>20, r.served, r.slowest.Seconds(),
			r.plain.Seconds(), r.what)
	}
	_ = t.Flush()
	return b.String()
}
