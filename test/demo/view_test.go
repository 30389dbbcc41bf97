package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

var (
	host     = sample{name: "ctr", minimum: 2, maximum: 3}
	newcomer = sample{name: "ranker", minimum: 1, maximum: 2}
)

// pod is worker i of a job of the given core, on a node.
func pod(job sample, i int, part string) *corev1.Pod {
	name := job.name + "-worker-" + string(rune('0'+i))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Labels: map[string]string{v1beta1.LabelJob: job.name, v1beta1.LabelPart: part},
		},
		Spec:   corev1.PodSpec{NodeName: "gpu-0"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// hostView is a view in which the host has every GPU.
func hostView() view {
	v := newView()
	v.put(&v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Name: host.name}, Status: v1beta1.ElasticTrainingJobStatus{
		Phase: v1beta1.PhaseRunning, ReadyReplicas: 3, Summary: "3/3 (2..3)", Reason: "Training", Message: "All 3 workers ready.",
	}})
	v.put(pod(host, 0, v1beta1.PartCore))
	v.put(pod(host, 1, v1beta1.PartCore))
	v.put(pod(host, 2, v1beta1.PartSurplus))
	return v
}

func TestPlaced(t *testing.T) {
	v := hostView()
	for name, change := range map[string]func(*corev1.Pod){
		"waits":     func(p *corev1.Pod) { p.Spec.NodeName = "" },
		"leaves":    func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
		"succeeded": func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"failed":    func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"other":     func(p *corev1.Pod) { p.Labels = nil },
	} {
		p := pod(host, 2, v1beta1.PartSurplus)
		p.Name = name
		change(p)
		v.put(p)
	}
	if got, want := v.placed(host.name), []string{"ctr-worker-0", "ctr-worker-1", "ctr-worker-2"}; !slices.Equal(got, want) {
		t.Errorf("placed: %v, want %v", got, want)
	}
	if got := len(v.existing(host.name)); got != 7 {
		t.Errorf("%d workers exist, want 7", got)
	}
}

func TestGoals(t *testing.T) {
	v := hostView()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "first"}, Reason: v1beta1.EventGrew,
		Regarding: corev1.ObjectReference{Kind: v1beta1.ElasticTrainingJobKind, Name: host.name},
	}
	v.put(event)
	ofPod := event.DeepCopy()
	ofPod.Name, ofPod.Regarding.Kind = "second", "Pod"
	v.put(ofPod)
	larger := host
	larger.maximum = 8
	for _, test := range []struct {
		goal  goal
		met   bool
		stand string
	}{
		{fullSize(host), true, ""},
		{fullSize(larger), false, "it is Running with 3/3 (2..3) workers (Training): All 3 workers ready."},
		{trains(host), true, ""},
		{succeeded(host), false, "it is Running"},
		{trains(newcomer), false, "there is no job ranker"},
		{told(host, v1beta1.EventGrew, 1), true, ""},
		{told(host, v1beta1.EventGrew, 2), false, "it has the events Grew"},
		{told(newcomer, v1beta1.EventGrew, 1), false, "it has the events "},
	} {
		met, stand := test.goal.met(v)
		if met != test.met || !strings.HasPrefix(stand, test.stand) {
			t.Errorf("%s: %t, %q; want %t, %q", test.goal.what, met, stand, test.met, test.stand)
		}
	}
}

func TestUnharmed(t *testing.T) {
	core := hostView().core(host)
	for name, test := range map[string]struct {
		change func(view)
		want   string
	}{
		"all is well":          {func(view) {}, ""},
		"surplus came anew":    {func(v view) { v.pods["ctr-worker-2"].UID = "other" }, ""},
		"core came anew":       {func(v view) { v.pods["ctr-worker-1"].UID = "other" }, "the core of ctr changed its pods"},
		"core is smaller":      {func(v view) { v.drop(v.pods["ctr-worker-0"]) }, "the core of ctr changed its pods"},
		"a restart is counted": {func(v view) { v.jobs[host.name].Status.Restarts = 1 }, "ctr counted 1 restarts"},
	} {
		v := hostView()
		test.change(v)
		err := unharmed(v, host, maps.Clone(core))
		if (err == nil) != (test.want == "") || (err != nil && !strings.HasPrefix(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if err := unharmed(hostView(), host, nil); err == nil {
		t.Error("no error though the core was never seen")
	}
}

func TestTimeline(t *testing.T) {
	line := timeline{host: host, newcomer: newcomer}
	begin := time.Unix(1000, 0)
	v := hostView()
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Name: newcomer.name}}
	arrives := pod(newcomer, 0, v1beta1.PartCore)
	arrives.Spec.NodeName = ""
	for i, change := range []func(){
		func() {}, // before the job is there, nothing counts
		func() { v.put(job) },
		func() { v.put(arrives) },
		func() { v.drop(v.pods["ctr-worker-2"]) },
		func() { arrives.Spec.NodeName = "gpu-0" },
		func() { job.Status.Phase = v1beta1.PhaseRunning },
		func() { v.put(pod(host, 2, v1beta1.PartSurplus)) },
	} {
		change()
		line.note(v, begin.Add(time.Duration(i*i)*time.Second))
	}
	const want = "ranker ran 24.0 s after it was created: 3.0 s until the operator had created its gang, 5.0 s until Volcano " +
		"evicted surplus of ctr, 7.0 s until Volcano placed the gang in the room that became free, 9.0 s until its containers ran " +
		"and its status said so."
	if got := line.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The story says that the first job takes every GPU of its node and leaves room for the second only by giving way.
func TestSamplesFitTheStory(t *testing.T) {
	a, err := readSample("../..", sampleA)
	if err != nil {
		t.Fatal(err)
	}
	b, err := readSample("../..", sampleB)
	if err != nil {
		t.Fatal(err)
	}
	if a.maximum-a.minimum < b.minimum || a.cooldown <= 0 || b.cooldown != 0 || a.namespace != b.namespace {
		t.Errorf("A is %+v, B is %+v", a, b)
	}
}
