package volcanojob

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
	"github.com/tideline-io/tideline/internal/cli/convert"
	"github.com/tideline-io/tideline/test/testutil"
)

var _ = Describe("Pods", func() {
	for _, name := range slices.Sorted(maps.Keys(compared)) {
		It("of "+name+" differ as documented", func() {
			given := compared[name]()
			theirs := &side{Scenario: shared.World.NewScenario(GinkgoT(), "theirs", 8)}
			ours := &side{Scenario: shared.World.NewScenario(GinkgoT(), "ours", 8), ours: true}
			theirs.Create(inPool(given, theirs.Namespace))
			DeferCleanup(func() { // before the scenario's pods, which Volcano would create anew
				theirs.Delete(&batch.Job{ObjectMeta: inPool(given, theirs.Namespace).ObjectMeta})
			})
			ours.Create(converted(inPool(given, ours.Namespace)))
			for _, s := range []*side{theirs, ours} {
				Eventually(s.running).Should(Equal(pods(given)), "all pods run")
			}
			rows := differing(theirs.facts(), ours.facts())
			Expect(strings.Join(rows, "\n")).To(Equal(documented(name)), "theirs is the first, ours the second")
		})
	}
})

// converted is what `tideline convert` prints for a job.
func converted(job *batch.Job) *v1beta1.ElasticTrainingJob {
	GinkgoHelper()
	written, err := yaml.Marshal(job)
	Expect(err).NotTo(HaveOccurred())
	var stdout, stderr bytes.Buffer
	program, args := cli.Root("tideline", convert.Command()), []string{"convert", "-f", "-"}
	code := cli.Execute(context.Background(), program, args, bytes.NewReader(written), &stdout, &stderr)
	Expect(code).To(BeZero(), stderr.String())
	result := &v1beta1.ElasticTrainingJob{}
	Expect(yaml.UnmarshalStrict(stdout.Bytes(), result)).To(Succeed())
	return result
}

// documented are the rows of a job's table.
func documented(name string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "pods.md"))
	Expect(err).NotTo(HaveOccurred())
	_, after, found := strings.Cut(string(content), "\n**"+name+"**")
	Expect(found).To(BeTrue(), "the page has a table for %s", name)
	_, table, _ := strings.Cut(after, "|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	return strings.TrimSpace(table)
}

// side is a namespace in which a Job runs, by Volcano or, converted, by Tideline.
type side struct {
	*testutil.Scenario
	ours bool
}

// rank is a pod's place: that of a task of one pod is 0, where there are two tasks.
func (s *side) rank(pod *corev1.Pod) int {
	index := pod.Annotations[batch.TaskIndex]
	if s.ours {
		index = pod.Labels[v1beta1.LabelWorkerIndex]
	}
	i, err := strconv.Atoi(index)
	if err != nil {
		return -1
	}
	if !s.ours && pod.Annotations[batch.TaskSpecKey] == "worker" {
		i++
	}
	return i
}

// pods are those that are not leaving, by rank.
func (s *side) pods() (map[int]*corev1.Pod, error) { return s.PodsByRank(s.rank) }

// running is how many pods run.
func (s *side) running() (int, error) {
	byRank, err := s.pods()
	maps.DeleteFunc(byRank, func(_ int, p *corev1.Pod) bool { return !testutil.Running(p) })
	return len(byRank), err
}

// facts are what is to be seen of the pods, each with its value on every rank.
func (s *side) facts() map[string]string {
	GinkgoHelper()
	byRank, err := s.pods()
	Expect(err).NotTo(HaveOccurred())
	all := map[string][]string{}
	for rank := range len(byRank) {
		Expect(byRank).To(HaveKey(rank), "ranks have no gaps")
		for name, value := range s.podFacts(byRank[rank]) {
			if all[name] == nil {
				all[name] = make([]string, len(byRank))
			}
			value = attempt.ReplaceAllString(strings.ReplaceAll(value, s.Namespace, "NAMESPACE"), "UID-ATTEMPT")
			if strings.HasSuffix(name, "`PET_LOCAL_ADDR`") {
				value = strings.ReplaceAll(value, byRank[rank].Name+".", "POD.")
			}
			all[name][rank] = value
		}
	}
	found := map[string]string{}
	for name, values := range all {
		found[name] = inWords(values)
	}
	return found
}

// attempt is the id of an attempt, which differs from job to job.
var attempt = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+-\d{10}`)

// podFacts are those of one pod: of its containers all that people say, of the pod what decides who finds and stops it.
func (s *side) podFacts(pod *corev1.Pod) map[string]string {
	GinkgoHelper()
	found := map[string]string{
		"pod": pod.Name, "`hostname`": pod.Spec.Hostname, "`subdomain`": pod.Spec.Subdomain,
		"`restartPolicy`": string(pod.Spec.RestartPolicy), "`priorityClassName`": pod.Spec.PriorityClassName,
		"`schedulerName`": pod.Spec.SchedulerName, "node selector": fmt.Sprint(pod.Spec.NodeSelector),
		"label `team`": pod.Labels["team"],
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		of := "`" + c.Name + "`'s "
		for _, e := range c.Env {
			found[of+"`"+e.Name+"`"] = s.value(pod, e)
		}
		var paths []string
		for _, m := range c.VolumeMounts {
			if !strings.HasPrefix(m.Name, "kube-api-access-") {
				paths = append(paths, m.MountPath)
			}
		}
		slices.Sort(paths)
		found[of+"mounts"] = strings.Join(paths, ", ")
		c.Env, c.VolumeMounts = nil, nil
		written, err := json.Marshal(c)
		Expect(err).NotTo(HaveOccurred())
		var fields map[string]any
		Expect(json.Unmarshal(written, &fields)).To(Succeed())
		for name, value := range fields {
			written, err := json.Marshal(value)
			Expect(err).NotTo(HaveOccurred())
			found[of+"`"+name+"`"] = strings.Trim(string(written), `"`)
		}
	}
	return found
}

// value is that of a variable when the container starts.
func (s *side) value(pod *corev1.Pod, e corev1.EnvVar) string {
	GinkgoHelper()
	switch from := e.ValueFrom; {
	case from == nil:
		return e.Value
	case from.FieldRef != nil:
		_, label, _ := strings.Cut(from.FieldRef.FieldPath, "'")
		return pod.Labels[strings.TrimSuffix(label, "']")]
	default:
		listed := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: s.Namespace, Name: from.ConfigMapKeyRef.Name}
		Expect(s.Client.Get(s.Context(), key, listed)).To(Succeed())
		return listed.Data[from.ConfigMapKeyRef.Key]
	}
}

// unset is a fact that one of the two does not have.
const unset = "not set"

// inWords joins the values of each rank.
func inWords(values []string) string {
	for i := range values {
		values[i] = cmp.Or(values[i], unset)
	}
	switch {
	case len(slices.Compact(slices.Clone(values))) == 1:
		return values[0]
	case len(slices.Compact(slices.Clone(values[1:]))) == 1:
		return fmt.Sprintf("%s; on rank 0 %s", values[1], values[0])
	}
	return strings.Join(values, "; ")
}

// differing lists the facts in which two jobs differ, each as the row of a table: what is the same of all containers once.
func differing(theirs, ours map[string]string) []string {
	names := maps.Clone(theirs)
	maps.Copy(names, ours)
	differs := map[string]string{}
	for name := range names {
		if a, b := cmp.Or(theirs[name], unset), cmp.Or(ours[name], unset); a != b {
			differs[name] = fmt.Sprintf(" | %s | %s |", a, b)
		}
	}
	together := func(name string, of ...string) {
		words := differs[of[0]]
		if words == "" || slices.ContainsFunc(of, func(each string) bool { return differs[each] != words }) {
			return
		}
		for _, each := range of {
			delete(differs, each)
		}
		differs[name] = words
	}
	for name := range maps.Clone(differs) {
		if fact, isTrainers := strings.CutPrefix(name, "`train`'s "); isTrainers {
			together("each container's "+fact, name, "`logs`'s "+fact, "`data`'s "+fact)
			together("`train`'s and `logs`'s "+fact, name, "`logs`'s "+fact)
		}
	}
	together("pod and `hostname`", "pod", "`hostname`")
	var rows []string
	for name, words := range differs {
		rows = append(rows, "| "+name+words)
	}
	slices.Sort(rows)
	return rows
}
