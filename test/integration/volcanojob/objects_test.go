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
			theirs := &side{Scenario: shared.World.NewScenario(GinkgoT(), "theirs", 8), tasks: given.Spec.Tasks}
			ours := &side{Scenario: shared.World.NewScenario(GinkgoT(), "ours", 8)}
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
	// tasks are those of Volcano's Job in the order of the workers that they become; nil for Tideline's side.
	tasks []batch.TaskSpec
}

// rank is a pod's place: tasks have theirs one after another.
func (s *side) rank(pod *corev1.Pod) int {
	index, before := pod.Labels[v1beta1.LabelWorkerIndex], int32(0)
	if s.tasks != nil {
		index = pod.Annotations[batch.TaskIndex]
	}
	for i := range s.tasks {
		if s.tasks[i].Name == pod.Annotations[batch.TaskSpecKey] {
			break
		}
		before += s.tasks[i].Replicas
	}
	i, err := strconv.Atoi(index)
	if err != nil {
		return -1
	}
	return i + int(before)
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
		values := map[string]string{}
		for _, e := range c.Env {
			values[e.Name] = expanded(s.value(pod, e), values)
			for part, value := range partsOf(values[e.Name]) {
				found[of+"`"+e.Name+"`"+part] = value
			}
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

// expanded has the values of earlier variables where one refers to them, as the kubelet does it.
func expanded(value string, earlier map[string]string) string {
	for name, had := range earlier {
		value = strings.ReplaceAll(value, "$("+name+")", had)
	}
	return value
}

// partsOf are the fields of a variable that is an object in JSON, each in one form, and otherwise the whole of it.
func partsOf(value string) map[string]string {
	fields := map[string]any{}
	if json.Unmarshal([]byte(value), &fields) != nil || len(fields) == 0 {
		return map[string]string{"": value}
	}
	parts := map[string]string{}
	for name, field := range fields {
		written, err := json.Marshal(field)
		Expect(err).NotTo(HaveOccurred())
		parts[", "+name] = string(written)
	}
	return parts
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
