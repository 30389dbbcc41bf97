//go:build linux

package node_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

const (
	trainingImage = "registry.example.com/pytorch-elastic:1.0"
	mpiImage      = "registry.example.com/mpi:1.0"
	// name is what the example calls all of its objects.
	name = "pytorch-elastic"
	// interval is how many steps are between two checkpoints, and step how long each takes at least.
	interval = 5
	step     = 250 * time.Millisecond
)

// said is a line of the training.
type said struct {
	Event             string
	Time, Loss, Rate  float64
	Rank, World, Step int
	Samples           int64
	Asked             bool
	pod               types.UID
}

// training is a job that was made of the example's file.
type training struct {
	*testutil.Scenario
	name string
	// lines are what the pods said that were seen so far, by pod: the kubelet removes what pods said that are gone.
	lines map[types.UID][]said
	// requested is the last checkpoint that worker 0 was seen to be asked for, and done the last that it said it had saved.
	requested, done int64
}

// train creates the objects of the example under a name, each changed as the spec needs it, and a volume for its claim.
func train(s *testutil.Scenario, as string, change func(*v1beta1.ElasticTrainingJob)) *training {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", name, "job.yaml"))
	Expect(err).NotTo(HaveOccurred())
	folder := GinkgoT().TempDir()
	Expect(os.Chmod(folder, 0o777)).To(Succeed()) // its pods may be anybody
	s.Claim(as, folder)
	for document := range strings.SplitSeq(strings.ReplaceAll(string(content), name+"\n", as+"\n"), "\n---\n") {
		document = strings.ReplaceAll(document, name+"-worker-0", as+"-worker-0")
		o := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &o.Object)).To(Succeed())
		o.SetNamespace(s.Namespace)
		switch o.GetKind() {
		case "PersistentVolumeClaim": // It is there, and bound.
			continue
		case v1beta1.ElasticTrainingJobKind:
			job := &v1beta1.ElasticTrainingJob{}
			Expect(yaml.UnmarshalStrict([]byte(document), job)).To(Succeed())
			job.Namespace = s.Namespace
			job.Spec.Template.Spec.Containers[0].Args = args(10_000_000)
			job.Spec.Elasticity.Growth.OutageSeconds = ptr.To[int32](60) // Its steps are many, and few are done again.
			if change != nil {
				change(job)
			}
			s.Create(job)
		default:
			s.Create(o)
		}
	}
	return &training{Scenario: s, name: as, lines: map[types.UID][]said{}}
}

// args are what the training is told: to train on so many samples, slowly, and to say each step.
func args(samples int) []string {
	return []string{
		fmt.Sprintf("--samples=%d", samples), fmt.Sprintf("--step-seconds=%.2f", step.Seconds()),
		fmt.Sprintf("--checkpoint-steps=%d", interval), "--log-steps=1",
	}
}

// graceless leaves checkpoints to the training.
func graceless(job *v1beta1.ElasticTrainingJob) {
	job.Spec.Checkpoint = v1beta1.Checkpoint{}
	cooldown(job)
}

// cooldown lets a training grow back soon.
func cooldown(job *v1beta1.ElasticTrainingJob) {
	seconds := int32(5)
	job.Spec.Elasticity.Growth.CooldownSeconds = &seconds
}

// asking leaves checkpoints to Tideline: one that the training makes by itself after a request would be an answer, too.
func asking(job *v1beta1.ElasticTrainingJob) {
	cooldown(job)
	c := &job.Spec.Template.Spec.Containers[0]
	c.Args = append(c.Args, "--checkpoint-steps=1000000") // of two the last counts
}

// observe reads what all pods of the training have said, and what worker 0 was asked and answered.
func (t *training) observe() map[types.UID][]said {
	GinkgoHelper()
	pods, err := t.Pods(t.name)
	Expect(err).NotTo(HaveOccurred())
	for i := range pods {
		if pods[i].Name == t.name+"-worker-0" {
			t.requested = max(t.requested, number(pods[i].Annotations[v1beta1.AnnotationCheckpointRequested]))
			t.done = max(t.done, number(pods[i].Annotations[v1beta1.AnnotationCheckpointDone]))
		}
		lines, err := machine.Logs(&pods[i], "trainer")
		Expect(err).NotTo(HaveOccurred())
		heard := make([]said, 0, len(lines))
		for _, line := range lines {
			l := said{pod: pods[i].UID}
			if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &l) == nil {
				heard = append(heard, l)
			}
		}
		if len(heard) > len(t.lines[pods[i].UID]) {
			t.lines[pods[i].UID] = heard
		}
	}
	return t.lines
}

// steps are what rank 0 said when it started and after each step, in their order.
func (t *training) steps() []said {
	GinkgoHelper()
	var all []said
	for _, uid := range slices.Sorted(maps.Keys(t.observe())) {
		for _, l := range t.lines[uid] {
			if l.Event == "step" || l.Event == "start" && l.Rank == 0 {
				all = append(all, l)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b said) int { return int((a.Time - b.Time) * 1000) })
	return all
}

// last is the last step of rank 0.
func (t *training) last() said {
	GinkgoHelper()
	all := t.steps()
	for _, l := range slices.Backward(all) {
		if l.Event == "step" {
			return l
		}
	}
	return said{}
}

// await waits until the training has made some steps with so many processes.
func (t *training) await(world int) {
	GinkgoHelper()
	began := t.last().Step
	Eventually(t.last).WithTimeout(3*time.Minute).Should(And(
		HaveField("World", world), HaveField("Step", BeNumerically(">", began+2))), "%s trains with %d workers", t.name, world)
}

// followsWorld expects that every step took as many samples, at as high a learning rate, as the number of workers asks for, and
// that there were steps of each of these numbers.
func (t *training) followsWorld(worlds ...int) {
	const batch, rate = 64, 0.01 // of one process, by default
	GinkgoHelper()
	seen, before := map[int]bool{}, said{}
	for _, l := range t.steps() {
		if l.Event == "step" {
			Expect(l.Rate).To(BeNumerically("~", rate*float64(l.World), 1e-9), "the learning rate of %d workers", l.World)
			if before.Event == "step" && before.Step+1 == l.Step {
				Expect(l.Samples-before.Samples).To(BeEquivalentTo(batch*l.World), "the samples of a step of %d workers", l.World)
				seen[l.World] = true
			}
		}
		before = l
	}
	Expect(slices.Sorted(maps.Keys(seen))).To(Equal(worlds))
}

// again waits until the training has made steps with all its four processes after it started anew.
func (t *training) again() {
	const world = 4
	GinkgoHelper()
	starts := func() int {
		n := 0
		for _, l := range t.steps() {
			if l.Event == "start" && l.World == world {
				n++
			}
		}
		return n
	}
	before := starts()
	Eventually(starts).WithTimeout(3*time.Minute).Should(BeNumerically(">", before), "%s starts anew", t.name)
	t.await(world)
}

// number is what an annotation says; 0 for none.
func number(annotation string) int64 {
	GinkgoHelper()
	if annotation == "" {
		return 0
	}
	n, err := strconv.ParseInt(annotation, 10, 64)
	Expect(err).NotTo(HaveOccurred())
	return n
}

// gone waits until no worker is left, and hears what they say until then.
func (t *training) gone() {
	GinkgoHelper()
	Eventually(func() ([]int, error) {
		t.observe()
		return t.Workers(t.name)()
	}).WithTimeout(2*time.Minute).Should(BeEmpty(), "%s has stopped", t.name)
}

// answered expects that worker 0 saved a checkpoint because it was asked to, and said so to Tideline.
func (t *training) answered() {
	GinkgoHelper()
	lines := slices.Concat(slices.Collect(maps.Values(t.observe()))...)
	Expect(lines).To(ContainElement(And(HaveField("Event", "checkpoint"), HaveField("Asked", true))), "it saved when it was asked")
	Expect(t.requested).NotTo(BeZero(), "worker 0 was asked to save")
	Expect(t.done).To(BeNumerically(">=", t.requested), "it said that it had saved")
}

// lost is the most steps that were made again after a start, and out for how long no step was made at most.
func (t *training) lost() (steps int, out time.Duration) {
	GinkgoHelper()
	before := said{}
	for _, l := range t.steps() {
		if before.Step > 0 && l.Event == "start" {
			steps = max(steps, before.Step-l.Step)
		}
		if l.Event != "step" {
			continue
		}
		if before.Step > 0 {
			out = max(out, time.Duration((l.Time-before.Time)*float64(time.Second)))
		}
		before = l
	}
	return steps, out.Round(100 * time.Millisecond)
}

// core are the UIDs of the first two workers.
func (t *training) core() []types.UID {
	GinkgoHelper()
	uids := t.UIDs(t.name)
	return []types.UID{uids[0], uids[1]}
}
