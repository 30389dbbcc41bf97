package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// Bounds of a pod template in the CustomResourceDefinition.
const (
	maxContainers = 16
	maxEnv        = 1000
	maxNodeLabels = 16
)

var dns1035 = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// template carries over the pod template of the workers without what an ElasticTrainingJob refuses.
func (c *conversion) template() {
	role := c.role()
	path := replicaPath(role) + ".template"
	in := c.in.Spec.PyTorchReplicaSpecs[role].Template.DeepCopy()
	out := &c.out.Spec.Template
	out.ObjectMeta = metav1.ObjectMeta{Labels: maps.Clone(in.Labels), Annotations: maps.Clone(in.Annotations)}
	out.Spec = in.Spec
	c.templateMetadata(path+".metadata", in)
	c.decidedFields(path+".spec", &out.Spec)
	for i := range out.Spec.Containers {
		c.environment(path, &out.Spec.Containers[i])
	}
	c.port(path, &out.Spec.Containers[slices.IndexFunc(out.Spec.Containers, isPyTorch)])
	c.oldLabels(path, &out.Spec)
	c.sidecars(path, out.Spec.Containers)
	renameTrainer(out)
	c.setDefaultEnv("PYTHONUNBUFFERED", "1") // as training-operator does, so that logs appear at once
}

// trainer is the training container of the result.
func (c *conversion) trainer() *corev1.Container {
	containers := c.out.Spec.Template.Spec.Containers
	return &containers[rendezvous.TrainerIndex(containers)]
}

// setEnv sets a variable of the training container, whatever the template says.
func (c *conversion) setEnv(name, value string) {
	t := c.trainer()
	t.Env = slices.DeleteFunc(t.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	t.Env = append(t.Env, corev1.EnvVar{Name: name, Value: value})
}

// setDefaultEnv sets a variable of the training container unless the template does.
func (c *conversion) setDefaultEnv(name, value string) {
	if !slices.ContainsFunc(c.trainer().Env, func(e corev1.EnvVar) bool { return e.Name == name }) {
		c.setEnv(name, value)
	}
}

func isVolcanoAnnotation(key string) bool {
	return strings.HasPrefix(key, "volcano.sh/") || strings.HasPrefix(key, "scheduling.volcano.sh/") ||
		strings.HasPrefix(key, "scheduling.k8s.io/")
}

func (c *conversion) templateMetadata(path string, in *corev1.PodTemplateSpec) {
	const meaning, do = "Tideline speaks to Volcano for its pods; it is left out", "see docs/convert.md for what takes its place"
	out := &c.out.Spec.Template
	for _, key := range sortedKeys(in.Annotations) {
		if isVolcanoAnnotation(key) || strings.HasPrefix(key, "tideline.io/") {
			c.note(path+".annotations["+key+"]", in.Annotations[key], meaning, do)
			delete(out.Annotations, key)
		}
	}
	for _, key := range sortedKeys(in.Labels) {
		if strings.HasPrefix(key, "volcano.sh/") || strings.HasPrefix(key, "tideline.io/") {
			c.note(path+".labels["+key+"]", in.Labels[key], meaning, do)
			delete(out.Labels, key)
		}
	}
	if len(in.Finalizers) > 0 {
		c.note(path+".finalizers", in.Finalizers, "Tideline's pods have no finalizers; they are left out", "")
	}
}

// decidedFields takes out what Tideline decides and an ElasticTrainingJob refuses.
func (c *conversion) decidedFields(path string, spec *corev1.PodSpec) {
	const tier = "the priority follows from the tier; it is left out"
	const setTier = "set spec.tier, for example exploratory, small-traffic or main-traffic"
	drop := func(name string, field *string, meaning, do string) {
		if *field != "" {
			c.note(path+"."+name, *field, meaning, do)
			*field = ""
		}
	}
	if spec.SchedulerName == "volcano" {
		spec.SchedulerName = ""
	}
	drop("schedulerName", &spec.SchedulerName, "Tideline schedules with Volcano; it is left out", "")
	drop("priorityClassName", &spec.PriorityClassName, tier, setTier)
	if spec.Priority != nil {
		c.note(path+".priority", *spec.Priority, tier, setTier)
		spec.Priority = nil
	}
	if spec.PreemptionPolicy != nil {
		c.note(path+".preemptionPolicy", *spec.PreemptionPolicy, tier, setTier)
		spec.PreemptionPolicy = nil
	}
	drop("nodeName", &spec.NodeName, "it would bypass the scheduler; it is left out",
		"use nodeSelector, for example kubernetes.io/hostname")
	if len(spec.SchedulingGates) > 0 {
		c.note(path+".schedulingGates", spec.SchedulingGates, "Volcano places no pod that a gate holds; they are left out",
			"set spec.suspend to hold the job back")
		spec.SchedulingGates = nil
	}
	drop("hostname", &spec.Hostname, "each worker has the name of its pod, NAME-worker-INDEX; it is left out", "")
	drop("subdomain", &spec.Subdomain, "it is the job's headless Service, NAME-workers; it is left out", "")
	if spec.RestartPolicy != corev1.RestartPolicyOnFailure && spec.RestartPolicy != "" {
		c.note(path+".restartPolicy", spec.RestartPolicy,
			"training-operator put the role's restartPolicy in its place, so it had no effect; it is left out", "")
	}
	spec.RestartPolicy = ""
}

// reserved are the variables that an ElasticTrainingJob refuses; displaced are others that training-operator sets and that
// would lead torchrun elsewhere than Tideline does.
var (
	reserved = []string{
		"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PET_NNODES", "PET_NPROC_PER_NODE", "PET_RDZV_BACKEND",
		"PET_RDZV_ENDPOINT", "PET_RDZV_ID", "PET_RDZV_CONF", "PET_LOCAL_ADDR",
	}
	displaced = []string{"PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_STANDALONE"}
)

// environment takes out the variables of a container by which torchrun is told what Tideline tells it.
func (c *conversion) environment(templatePath string, container *corev1.Container) {
	path := templatePath + ".spec.containers[" + container.Name + "].env"
	container.Env = slices.DeleteFunc(container.Env, func(e corev1.EnvVar) bool {
		if !slices.Contains(reserved, e.Name) && !slices.Contains(displaced, e.Name) {
			return false
		}
		var value any = e.Value
		if e.ValueFrom != nil {
			value = e.ValueFrom
		}
		c.note(path+"["+e.Name+"]", value, "torchrun and Tideline set it; it is left out", "")
		return true
	})
}

// limits says where the template is larger than an ElasticTrainingJob's may be.
func (c *conversion) limits() {
	path := replicaPath(c.role()) + ".template.spec.containers"
	in, out := c.in.Spec.PyTorchReplicaSpecs[c.role()].Template.Spec.Containers, c.out.Spec.Template.Spec.Containers
	if n := len(c.out.Spec.Template.Spec.NodeSelector); n > maxNodeLabels {
		c.refuse(replicaPath(c.role())+".template.spec.nodeSelector", n, fmt.Sprintf(
			"a template may select nodes by %d labels; it will be refused", maxNodeLabels), "give nodes one label that says the same")
	}
	if n := len(out); n > maxContainers {
		c.refuse(path, n, fmt.Sprintf("a template may have %d containers; it will be refused", maxContainers), "join some of them")
	}
	for i := range out {
		if n := len(out[i].Env); n > maxEnv {
			c.refuse(path+"["+in[i].Name+"].env", n, fmt.Sprintf(
				"a container may have %d variables, those that are added here included; it will be refused", maxEnv),
				"put them into a ConfigMap and name it in envFrom")
		}
	}
}

// port takes out the port that training-operator uses for the rendezvous.
func (c *conversion) port(templatePath string, container *corev1.Container) {
	path := templatePath + ".spec.containers[" + container.Name + "].ports[" + kubeflowv1.PyTorchJobDefaultPortName + "]"
	container.Ports = slices.DeleteFunc(container.Ports, func(p corev1.ContainerPort) bool {
		if p.Name != kubeflowv1.PyTorchJobDefaultPortName {
			return false
		}
		c.note(path, p.ContainerPort, "the port of the rendezvous is spec.framework.port; it is left out of the container",
			"let NetworkPolicies that name it name that port")
		return true
	})
}

// sidecars says of containers beside the training container what Tideline does not give them.
func (c *conversion) sidecars(templatePath string, containers []corev1.Container) {
	for i := range containers {
		if !isPyTorch(containers[i]) {
			c.note(templatePath+".spec.containers["+containers[i].Name+"]", containers[i].Image,
				"training-operator gives torchrun's variables to every container, Tideline to the training container alone;"+
					" a container that never exits keeps the worker from succeeding, as before",
				"move a sidecar to initContainers with restartPolicy Always")
		}
	}
}

// oldLabels says where the template selects pods by labels that training-operator sets.
func (c *conversion) oldLabels(templatePath string, spec *corev1.PodSpec) {
	const labels = "training.kubeflow.org/"
	for _, field := range []struct {
		name  string
		value any
	}{{"affinity", spec.Affinity}, {"topologySpreadConstraints", spec.TopologySpreadConstraints}} {
		written, err := json.Marshal(field.value)
		if err == nil && strings.Contains(string(written), labels) {
			c.note(templatePath+".spec."+field.name, field.value, "it selects by labels "+labels+"…, which Tideline's pods do not have",
				"select by tideline.io/job, whose value is the job's name")
		}
	}
}

// renameTrainer gives the training container the name by which Tideline knows it, wherever the template speaks of it.
func renameTrainer(t *corev1.PodTemplateSpec) {
	taken := containerNames(slices.Concat(t.Spec.Containers, t.Spec.InitContainers))
	if slices.Contains(taken, v1alpha1.TrainerContainer) {
		free := v1alpha1.TrainerContainer + "-sidecar"
		for slices.Contains(taken, free) {
			free += "-2"
		}
		rename(t, v1alpha1.TrainerContainer, free)
	}
	rename(t, kubeflowv1.PyTorchJobDefaultContainerName, v1alpha1.TrainerContainer)
}

func rename(t *corev1.PodTemplateSpec, from, to string) {
	renameRef := func(ref *corev1.ResourceFieldSelector) {
		if ref != nil && ref.ContainerName == from {
			ref.ContainerName = to
		}
	}
	for _, containers := range [][]corev1.Container{t.Spec.Containers, t.Spec.InitContainers} {
		for i := range containers {
			if containers[i].Name == from {
				containers[i].Name = to
			}
			for _, e := range containers[i].Env {
				if e.ValueFrom != nil {
					renameRef(e.ValueFrom.ResourceFieldRef)
				}
			}
		}
	}
	for _, v := range t.Spec.Volumes {
		for _, file := range downwardFiles(v) {
			renameRef(file.ResourceFieldRef)
		}
	}
	for key, value := range t.Annotations {
		if prefix, found := strings.CutSuffix(key, "/"+from); found {
			// Annotations of AppArmor and seccomp name a container in their key.
			delete(t.Annotations, key)
			t.Annotations[prefix+"/"+to] = value
		}
		if key == "kubectl.kubernetes.io/default-container" && value == from {
			t.Annotations[key] = to
		}
	}
}

// downwardFiles are the files of a volume that say something about the pod.
func downwardFiles(v corev1.Volume) []corev1.DownwardAPIVolumeFile {
	var files []corev1.DownwardAPIVolumeFile
	if v.DownwardAPI != nil {
		files = append(files, v.DownwardAPI.Items...)
	}
	if v.Projected != nil {
		for _, source := range v.Projected.Sources {
			if source.DownwardAPI != nil {
				files = append(files, source.DownwardAPI.Items...)
			}
		}
	}
	return files
}
