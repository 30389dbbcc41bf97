package convert

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
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
	c.fromTemplate(path, in)
	if p := in.Spec.RestartPolicy; p != corev1.RestartPolicyOnFailure && p != "" {
		c.note(path+".spec.restartPolicy", p,
			"training-operator put the role's restartPolicy in its place, so it had no effect; it is left out", "")
	}
	for i := range out.Spec.Containers {
		c.environment(path, &out.Spec.Containers[i])
	}
	c.port(path, &out.Spec.Containers[slices.IndexFunc(out.Spec.Containers, isPyTorch)])
	c.oldLabels(path, &out.Spec)
	c.sidecars(path, out.Spec.Containers)
	renameTrainer(out, kubeflowv1.PyTorchJobDefaultContainerName)
	c.setDefaultEnv("PYTHONUNBUFFERED", "1") // as training-operator does, so that logs appear at once
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

// limits says where the template is larger than an ElasticTrainingJob's may be.
func (c *conversion) limits() {
	c.templateLimits(replicaPath(c.role())+".template", c.in.Spec.PyTorchReplicaSpecs[c.role()].Template.Spec.Containers)
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
func renameTrainer(t *corev1.PodTemplateSpec, from string) {
	if from == v1beta1.TrainerContainer {
		return
	}
	taken := containerNames(slices.Concat(t.Spec.Containers, t.Spec.InitContainers))
	if slices.Contains(taken, v1beta1.TrainerContainer) {
		free := v1beta1.TrainerContainer + "-sidecar"
		for slices.Contains(taken, free) {
			free += "-2"
		}
		rename(t, v1beta1.TrainerContainer, free)
	}
	rename(t, from, v1beta1.TrainerContainer)
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
