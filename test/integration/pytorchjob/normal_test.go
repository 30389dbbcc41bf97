package pytorchjob

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// facts are what is to be seen of a job, in a form in which only differences that mean something are left: each is named, and
// said without namespaces, UIDs and times, and in the same words for all pods.
type facts map[string]string

// unset is a fact that one of the two does not have.
const unset = "not set"

// objects are the facts of the objects of a job that runs.
func (s *side) objects() facts {
	GinkgoHelper()
	byRank, err := s.pods()
	Expect(err).NotTo(HaveOccurred())
	perPod := make([]facts, len(byRank))
	for rank := range perPod {
		Expect(byRank).To(HaveKey(rank), "ranks have no gaps")
		perPod[rank] = s.podFacts(byRank[rank])
	}
	found := s.joined(perPod, byRank)
	s.services(found, byRank)
	s.podGroups(found, byRank)
	return found
}

// podFacts are those of one pod.
func (s *side) podFacts(pod *corev1.Pod) facts {
	GinkgoHelper()
	found := facts{"pods": pod.Name}
	for key, value := range pod.Labels {
		found["label "+key] = value
	}
	for key, value := range pod.Annotations {
		found["annotation "+key] = value
	}
	spec := pod.Spec.DeepCopy()
	spec.NodeName = ""
	notToken := func(name string) bool { return strings.HasPrefix(name, "kube-api-access-") }
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return notToken(v.Name) })
	var names, initNames []string
	for _, c := range spec.InitContainers {
		initNames = append(initNames, c.Name)
	}
	for _, c := range spec.Containers {
		names = append(names, c.Name)
		if !trains(c.Name) {
			found["variables of the container "+c.Name] = variables(c.Env)
			continue
		}
		for _, e := range c.Env {
			if e.Name != "PET_RDZV_CONF" {
				found["variable "+e.Name] = e.Value
				continue
			}
			for pair := range strings.SplitSeq(e.Value, ",") {
				key, value, _ := strings.Cut(pair, "=")
				found[e.Name+"'s "+key] = value
			}
		}
		for _, p := range c.Ports {
			found["port "+p.Name] = strconv.Itoa(int(p.ContainerPort))
		}
		c.Name, c.Env, c.Ports = "", nil, nil
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return notToken(m.Name) })
		flatten(found, "container's ", c)
	}
	found["containers"], found["initContainers"] = strings.Join(names, ", "), strings.Join(initNames, ", ")
	spec.Containers, spec.InitContainers = nil, nil
	flatten(found, "pod's ", spec)
	return found
}

// trains is whether a container of that name is the one that trains.
func trains(container string) bool {
	return container == kubeflowv1.PyTorchJobDefaultContainerName || container == v1beta1.TrainerContainer
}

// variables are the names of a container's variables.
func variables(env []corev1.EnvVar) string {
	var names []string
	for _, e := range env {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// flatten adds the fields of an object, each by its path.
func flatten(into facts, prefix string, object any) {
	GinkgoHelper()
	written, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	var fields any
	Expect(json.Unmarshal(written, &fields)).To(Succeed())
	walk(into, prefix, "", fields)
}

func walk(into facts, prefix, path string, value any) {
	fields, ok := value.(map[string]any)
	if !ok {
		written, _ := json.Marshal(value) // What was unmarshalled can be marshalled.
		if value != nil {
			into[prefix+path] = strings.Trim(string(written), `"`)
		}
		return
	}
	for name, below := range fields {
		if path != "" {
			name = path + "." + name
		}
		walk(into, prefix, name, below)
	}
}

// What differs from job to job, and means nothing.
var (
	uid     = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	attempt = regexp.MustCompile(`\b\d+-\d{10}\b`)
)

// plain is a value without what differs from job to job.
func (s *side) plain(value string) string {
	value = strings.ReplaceAll(value, s.Namespace, "NAMESPACE")
	return attempt.ReplaceAllString(uid.ReplaceAllString(value, "UID"), "ATTEMPT")
}

// joined says of all pods what each says of itself.
func (s *side) joined(perPod []facts, byRank map[int]*corev1.Pod) facts {
	all := facts{}
	for _, f := range perPod {
		maps.Copy(all, f)
	}
	for name := range all {
		values, named := make([]string, len(perPod)), make([]string, len(perPod))
		isRank := len(perPod) > 1
		for rank, f := range perPod {
			values[rank] = cmp.Or(s.plain(f[name]), unset)
			named[rank] = strings.ReplaceAll(values[rank], byRank[rank].Name, "POD")
			isRank = isRank && values[rank] == strconv.Itoa(rank)
		}
		switch {
		case name == "pods":
			all[name] = strings.Join(values, ", ")
		case isRank:
			all[name] = "its rank"
		case len(perPod) > 1 && same(named):
			all[name] = named[0]
		default:
			all[name] = inWords(values)
		}
	}
	return all
}

func same(values []string) bool { return len(slices.Compact(slices.Clone(values))) == 1 }

// inWords joins the values of each rank.
func inWords(values []string) string {
	if same(values) {
		return values[0]
	}
	if same(values[1:]) {
		return fmt.Sprintf("%s; on rank 0 %s", values[1], values[0])
	}
	words := make([]string, len(values))
	for rank, value := range values {
		words[rank] = fmt.Sprintf("%d: %s", rank, value)
	}
	return strings.Join(words, ", ")
}

// services adds what is to be seen of the Services.
func (s *side) services(found facts, byRank map[int]*corev1.Pod) {
	GinkgoHelper()
	list := &corev1.ServiceList{}
	Expect(s.Client.List(s.Context(), list, client.InNamespace(s.Namespace))).To(Succeed())
	var names []string
	each := map[string][]string{}
	for _, service := range list.Items {
		names = append(names, service.Name)
		of := facts{
			"pods of a Service":                  selected(&service, byRank),
			"Service's publishNotReadyAddresses": strconv.FormatBool(service.Spec.PublishNotReadyAddresses),
			"Service's clusterIP":                service.Spec.ClusterIP,
		}
		for _, p := range service.Spec.Ports {
			of["Service's port"] = p.Name + " " + strconv.Itoa(int(p.Port))
		}
		for name, value := range of {
			each[name] = append(each[name], value)
		}
	}
	slices.Sort(names)
	found["Services"] = strings.Join(names, ", ")
	for name, values := range each {
		found[name] = strings.Join(slices.Compact(slices.Sorted(slices.Values(values))), ", ")
	}
}

// selected says which pods a Service leads to.
func selected(service *corev1.Service, byRank map[int]*corev1.Pod) string {
	var names []string
	for _, pod := range byRank {
		if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	switch {
	case slices.Equal(names, []string{service.Name}):
		return "the one of its name"
	case len(names) == len(byRank):
		return "all"
	}
	return strings.Join(names, ", ")
}

// podGroups adds what is to be seen of the PodGroups.
func (s *side) podGroups(found facts, byRank map[int]*corev1.Pod) {
	GinkgoHelper()
	list := &schedulingv1beta1.PodGroupList{}
	Expect(s.Client.List(s.Context(), list, client.InNamespace(s.Namespace))).To(Succeed())
	var names []string
	for _, group := range list.Items {
		var members []int
		for rank, pod := range byRank {
			if pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == group.Name {
				members = append(members, rank)
			}
		}
		names = append(names, group.Name+ranks(" of ", members))
		if group.Name == jobName {
			flatten(found, "PodGroup's ", group.Spec)
		}
	}
	slices.Sort(names)
	found["PodGroups"] = strings.Join(names, ", ")
}

// differing lists the facts in which two jobs differ, each as one line.
func differing(theirs, ours facts) []string {
	names := maps.Clone(theirs)
	maps.Copy(names, ours)
	var lines []string
	for name := range names {
		a, b := cmp.Or(theirs[name], unset), cmp.Or(ours[name], unset)
		if a != b {
			lines = append(lines, line(name, a, b))
		}
	}
	slices.Sort(lines)
	return lines
}

func line(name, theirs, ours string) string { return name + " | " + theirs + " | " + ours }
