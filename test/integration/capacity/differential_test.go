package capacity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/topologycache"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/test/testutil"
)

const (
	// differentialEnv is how many questions are asked, and seedEnv the seed that repeats a run.
	differentialEnv, seedEnv = "TIDELINE_DIFFERENTIAL", "TIDELINE_DIFFERENTIAL_SEED"
	defaultQuestions         = 15
	// atOnce is how many questions are asked side by side.
	atOnce = 100
	// patience is for a machine that is busy with other work: a hundred gangs are asked at once.
	patience = 5 * time.Minute
)

var _ = Describe("What the model says fits", func() {
	It("is what Volcano places", SpecPriority(1), func() {
		seed, total := fromEnv(seedEnv, uint64(time.Now().UnixNano())), int(fromEnv(differentialEnv, defaultQuestions))
		AddReportEntry("differential", fmt.Sprintf("%s=%d %s=%d", seedEnv, seed, differentialEnv, total))
		began := time.Now()
		var all []*question
		for first := 0; first < total; first += atOnce {
			r := newRound(seed, first, min(first+atOnce, total))
			r.ask()
			all = append(all, r.questions...)
		}
		table, differ, unexplained := judge(all)
		AddReportEntry("result", fmt.Sprintf("%sin %s", table, time.Since(began).Round(time.Second)))
		Expect(unexplained).To(BeEmpty(), "every disagreement has an explanation; repeat with %s=%d", seedEnv, seed)
		vain, served, greedy := inVain(all)
		AddReportEntry("evictions", fmt.Sprintf("others left for %d gangs; %d of several shapes were not placed then", served, greedy))
		Expect(vain).To(BeEmpty(), "nobody leaves for a gang that Volcano cannot place; repeat with %s=%d", seedEnv, seed)
		Expect(greedy*100).To(BeNumerically("<=", total), "gangs of several shapes are placed as the model thinks in 99 %%")
		Expect(differ*100).To(BeNumerically("<=", total), "they agree on 99 %%; repeat with %s=%d", seedEnv, seed)
	})
})

func fromEnv(name string, otherwise uint64) uint64 {
	GinkgoHelper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	Expect(err).NotTo(HaveOccurred(), "%s is a number", name)
	return n
}

// inVain lists the gangs that no scheduler can place and that claim room all the same, and counts the gangs that others
// left for, and those that were not placed then: Volcano places pods one after another, so that a launcher may take the
// one place that a worker needs. The operator ends such a claim.
func inVain(all []*question) (vain []string, served, greedy int) {
	for _, q := range all {
		if q.hindered != "" && (q.claims && !q.asksRoom || len(q.victims) > 0) {
			vain = append(vain, q.String())
		}
		if len(q.victims) > 0 {
			served++
			if !q.isPlaced() {
				greedy++
			}
		}
	}
	return vain, served, greedy
}

// judge makes the table of disagreements, and counts them.
func judge(all []*question) (table string, differ int, unexplained []string) {
	var b strings.Builder
	placed, near, ruled, unknown, confined := 0, 0, 0, 0, 0
	for _, q := range all {
		if q.unaided {
			placed++
		}
		if q.close() {
			near++
		}
		if q.ruled > 0 {
			ruled++
		}
		if q.group.Spec.NetworkTopology != nil {
			confined++
		}
		if q.answer.Unknown != "" {
			unknown++
			continue
		}
		if q.fits() == q.unaided {
			continue
		}
		differ++
		why := q.explanation()
		if why == "" {
			unexplained = append(unexplained, q.String())
		}
		fmt.Fprintf(&b, "%s  because: %s\n", q, why)
	}
	fmt.Fprintf(&b, "%d questions: %d placed, %d not; %d where one worker decides; %d with rules about other pods; %d that must be "+
		"in one HyperNode; %d unknown; %d disagreements\n", len(all), placed, len(all)-placed, near, ruled, confined, unknown, differ)
	return b.String(), differ, unexplained
}

// round is some questions that are asked at the same time, in one namespace.
type round struct {
	*testutil.Scenario
	questions []*question
}

func newRound(seed uint64, first, end int) *round {
	GinkgoHelper()
	r := &round{Scenario: shared.World.NewScenario(GinkgoT(), "diff")}
	for n := first; n < end; n++ {
		r.questions = append(r.questions, newQuestion(seed, n, r.Namespace))
	}
	return r
}

// ask builds the clusters, has the model judge the gangs before there are any, and then has Volcano judge them.
func (r *round) ask() {
	GinkgoHelper()
	r.each("build the cluster", func(q *question) error {
		var objects []client.Object
		for _, n := range q.nodes {
			objects = append(objects, n.DeepCopy())
		}
		for _, h := range q.hyperNodes {
			objects = append(objects, h.DeepCopy())
		}
		return errors.Join(r.createAll(append(objects, q.queue.DeepCopy())), r.createClaim(q.volume, q.claim))
	})
	Eventually(r.readied).WithTimeout(patience).Should(BeEmpty(), "nodes and queues are ready")
	r.each("bind pods", func(q *question) error {
		var objects []client.Object
		if q.held != nil {
			objects = append(objects, q.held.DeepCopy())
		}
		for _, p := range q.bound {
			objects = append(objects, p) // Its UID is asked for later.
		}
		return r.createAll(objects)
	})
	Eventually(r.settled).WithTimeout(patience).Should(BeEmpty(), "the bound pods run, and Volcano counts them")
	r.askModel()
	r.each("ask", func(q *question) error {
		objects := []client.Object{q.group.DeepCopy()}
		for _, p := range q.asks {
			objects = append(objects, p.DeepCopy())
		}
		return r.createAll(objects)
	})
	Eventually(r.answered).WithTimeout(patience).Should(BeEmpty(), "Volcano places each gang or says that it cannot")
	// Whoever waits now was passed over again before each of these.
	for i := range 3 {
		r.placeAnother(fmt.Sprintf("later-%d", i))
	}
	Expect(r.answered()).To(BeEmpty(), "Volcano's answers are read")
	for _, q := range r.questions {
		q.unaided = q.isPlaced()
	}
	r.evict()
	r.clear()
}

// evict has those leave that the model told to, and waits for what Volcano makes of the room.
func (r *round) evict() {
	GinkgoHelper()
	r.each("evict", func(q *question) error {
		for _, p := range q.victims {
			if err := r.Client.Delete(r.Context(), p, client.GracePeriodSeconds(0)); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range 3 {
		r.placeAnother(fmt.Sprintf("last-%d", i))
	}
	Eventually(func() (waiting []string, err error) {
		_, err = r.answered()
		for _, q := range r.questions {
			if len(q.victims) > 0 && !q.isPlaced() && q.apart == 0 {
				waiting = append(waiting, q.String())
			}
		}
		return waiting, err
	}).WithTimeout(patience).Should(BeEmpty(), "Volcano places each gang that others left for")
}

// each does something for all questions, several at a time.
func (r *round) each(what string, do func(*question) error) {
	GinkgoHelper()
	var mu sync.Mutex
	var errs []error
	workqueue.ParallelizeUntil(r.Context(), 12, len(r.questions), func(i int) {
		if err := do(r.questions[i]); err != nil {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, fmt.Errorf("question %d: %w", r.questions[i].number, err))
		}
	})
	Expect(errors.Join(errs...)).To(Succeed(), what)
}

func (r *round) createAll(objects []client.Object) error {
	for _, o := range objects {
		if err := r.Client.Create(r.Context(), o); err != nil {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// createClaim creates a claim that is bound to its volume. Nobody else binds volumes on the local cluster.
func (r *round) createClaim(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	if err := r.createAll([]client.Object{volume, claim}); err != nil {
		return err
	}
	volume.Status.Phase = corev1.VolumeBound
	claim.Status = corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, AccessModes: volume.Spec.AccessModes, Capacity: volume.Spec.Capacity,
	}
	return errors.Join(r.Client.Status().Update(r.Context(), volume), r.Client.Status().Update(r.Context(), claim))
}

// readied lists the nodes and queues that are not ready.
func (r *round) readied() ([]string, error) {
	nodes, queues := &corev1.NodeList{}, &schedulingv1beta1.QueueList{}
	if err := errors.Join(r.Client.List(r.Context(), nodes), r.Client.List(r.Context(), queues)); err != nil {
		return nil, err
	}
	ready := map[string]bool{}
	for i := range nodes.Items {
		ready["node "+nodes.Items[i].Name] = isReady(&nodes.Items[i])
	}
	for _, q := range queues.Items {
		ready["queue "+q.Name] = q.Status.State == schedulingv1beta1.QueueStateOpen
	}
	var missing []string
	for _, q := range r.questions {
		for _, n := range q.nodes {
			if !ready["node "+n.Name] {
				missing = append(missing, n.Name)
			}
		}
		if !ready["queue "+q.queue.Name] {
			missing = append(missing, q.queue.Name)
		}
	}
	return missing, nil
}

// isReady is true for a node that is Ready and does not wait for the taint of its beginning to be taken off.
func isReady(n *corev1.Node) bool {
	starting := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	cordoned := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return ready && !starting && cordoned == n.Spec.Unschedulable
}

// settled lists the bound pods that do not run and the groups of bound pods that Volcano does not count as running.
func (r *round) settled() ([]string, error) {
	pods, groups, err := r.read()
	var missing []string
	for _, q := range r.questions {
		for _, p := range q.bound {
			if pods[p.Name].Status.Phase != corev1.PodRunning {
				missing = append(missing, p.Name)
			}
		}
		if q.held != nil && groups[q.held.Name].Status.Phase != schedulingv1beta1.PodGroupRunning {
			missing = append(missing, q.held.Name)
		}
	}
	return missing, err
}

// answered reads Volcano's answers, and lists the gangs of which it has said nothing yet.
func (r *round) answered() ([]string, error) {
	pods, groups, err := r.read()
	var open []string
	for _, q := range r.questions {
		q.placed, q.said = 0, ""
		for _, p := range q.asks {
			if pods[p.Name].Spec.NodeName != "" {
				q.placed++
			}
		}
		for _, c := range groups[q.group.Name].Status.Conditions {
			if c.Type == schedulingv1beta1.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
				q.said = c.Message
			}
		}
		if !q.isPlaced() && q.hindered == "" && (q.said == "" || q.placed > 0) {
			open = append(open, fmt.Sprintf("%s (%d of %d placed)", q.name, q.placed, len(q.asks)))
		}
	}
	return open, err
}

// read returns the pods and PodGroups of the namespace by name.
func (r *round) read() (map[string]corev1.Pod, map[string]schedulingv1beta1.PodGroup, error) {
	podList, groupList := &corev1.PodList{}, &schedulingv1beta1.PodGroupList{}
	in := client.InNamespace(r.Namespace)
	err := errors.Join(r.Client.List(r.Context(), podList, in), r.Client.List(r.Context(), groupList, in))
	pods, groups := map[string]corev1.Pod{}, map[string]schedulingv1beta1.PodGroup{}
	for _, p := range podList.Items {
		pods[p.Name] = p
	}
	for _, g := range groupList.Items {
		groups[g.Name] = g
	}
	return pods, groups, err
}

// askModel has an arbiter judge the gangs as if they were there.
func (r *round) askModel() {
	GinkgoHelper()
	with := overlay{Reader: r.Client}
	for _, q := range r.questions {
		with.groups = append(with.groups, *q.group)
		if q.holder != nil {
			with.jobs = append(with.jobs, *q.holder)
		}
		for _, p := range q.asks {
			with.pods = append(with.pods, *p)
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	a := arbiter.New(with, config.DefaultConfiguration(), func() bool { return true }, nil, logr.Discard())
	a.ReadTopology(topologycache.NewReader(r.Client))
	go func() {
		defer GinkgoRecover()
		Expect(a.Start(ctx)).To(Succeed(), "the arbiter runs")
	}()
	go func() {
		for {
			select {
			case <-a.WakeEvents(): // Jobs of other specs.
			case <-ctx.Done():
				return
			}
		}
	}()
	a.NoteChange()
	Eventually(func() (unjudged []string) {
		for _, q := range r.questions {
			v := a.VerdictFor(q.key())
			if v.Waiting == 0 && q.hindered == "" {
				unjudged = append(unjudged, q.name)
			}
			q.answer, q.claims = v.Answer, v.Waiting > 0
			q.tellVictims(a)
		}
		return unjudged
	}).WithTimeout(patience).Should(BeEmpty(), "the model judges every gang")
}

// tellVictims notes the pods that the model has leave for the gang.
func (q *question) tellVictims(a *arbiter.Arbiter) {
	q.victims = nil
	if q.holder == nil {
		return
	}
	for _, uid := range a.VerdictFor(client.ObjectKeyFromObject(q.holder)).GiveUp {
		for _, p := range q.surplus {
			if p.UID == uid {
				q.victims = append(q.victims, p)
			}
		}
	}
}

// overlay reads the cluster as if some gangs were in it that nobody has created yet, so that Volcano cannot be quicker.
type overlay struct {
	client.Reader
	groups []schedulingv1beta1.PodGroup
	pods   []corev1.Pod
	jobs   []v1beta1.ElasticTrainingJob
}

// List adds the gangs to what is there.
func (o overlay) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := o.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	switch l := list.(type) {
	case *corev1.PodList:
		for i := range o.jobs {
			controller := v1beta1.ControllerReference(&o.jobs[i], v1beta1.ElasticTrainingJobKind)
			for at := range l.Items {
				if _, _, is := rendezvous.ReadName(o.jobs[i].Name, l.Items[at].Name); is {
					l.Items[at].OwnerReferences = []metav1.OwnerReference{controller}
				}
			}
		}
		l.Items = append(l.Items, o.pods...)
	case *v1beta1.ElasticTrainingJobList:
		l.Items = append(l.Items, o.jobs...)
	case *schedulingv1beta1.PodGroupList:
		l.Items = append(l.Items, o.groups...)
	}
	return nil
}

// placeAnother waits until Volcano has placed a gang of one pod that asks for nothing, on the node that all specs share.
func (r *round) placeAnother(name string) {
	GinkgoHelper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name}}
	group.Spec.MinMember, group.Spec.Queue = 1, "default"
	pod := newPod(r.Namespace, name, nil)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "gpu-0"}
	join(pod, group)
	r.Create(group, pod)
	Eventually(func() (string, error) {
		return pod.Spec.NodeName, r.Client.Get(r.Context(), client.ObjectKeyFromObject(pod), pod)
	}).WithTimeout(patience).Should(Equal("gpu-0"), "Volcano places a gang that came later")
}

// clear makes room for the next round.
func (r *round) clear() {
	GinkgoHelper()
	in := client.InNamespace(r.Namespace)
	for _, o := range []client.Object{&schedulingv1beta1.PodGroup{}, &corev1.Pod{}} {
		Expect(r.Client.DeleteAllOf(r.Context(), o, in, client.GracePeriodSeconds(0))).To(Succeed(), "%T are deleted", o)
	}
	Eventually(func() (int, error) {
		pods, groups, err := r.read()
		return len(pods) + len(groups), err
	}).WithTimeout(patience).Should(BeZero(), "they are gone")
	r.each("remove the cluster", func(q *question) error {
		var errs []error
		for _, n := range q.nodes {
			errs = append(errs, r.Client.Delete(r.Context(), n))
		}
		for _, h := range q.hyperNodes {
			errs = append(errs, r.Client.Delete(r.Context(), h))
		}
		errs = append(errs, r.Client.Delete(r.Context(), q.claim), r.Client.Delete(r.Context(), q.volume))
		return errors.Join(append(errs, r.Client.Delete(r.Context(), q.queue))...)
	})
}
