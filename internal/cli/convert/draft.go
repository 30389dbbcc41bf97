package convert

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// draft is an ElasticTrainingJob in the making, and what is said of it.
type draft struct {
	out   *v1beta1.ElasticTrainingJob
	notes []Note
	// controller is who runs the job so far, and kind what that calls it.
	controller, kind string
}

func newDraft(controller, kind string) draft {
	return draft{out: &v1beta1.ElasticTrainingJob{}, controller: controller, kind: kind}
}

// note records that a field is not carried over or changes its meaning.
func (d *draft) note(path string, value any, meaning, do string) {
	d.notes = append(d.notes, newNote(path, value, meaning, do))
}

// refuse records what the API server will refuse in the result.
func (d *draft) refuse(path string, value any, meaning, do string) {
	n := newNote(path, value, meaning, do)
	n.Refused = true
	d.notes = append(d.notes, n)
}

// metadata carries over what people wrote about the job, and leaves behind what the API server wrote.
func (d *draft) metadata(in *metav1.ObjectMeta) {
	d.out.TypeMeta = metav1.TypeMeta{
		APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.ElasticTrainingJobKind,
	}
	d.out.Namespace, d.out.Name, d.out.GenerateName = in.Namespace, in.Name, in.GenerateName
	d.out.Labels, d.out.Annotations = maps.Clone(in.Labels), maps.Clone(in.Annotations)
	delete(d.out.Annotations, corev1.LastAppliedConfigAnnotation)
	for _, key := range sortedKeys(d.out.Annotations) {
		if isVolcanoAnnotation(key) {
			d.note("metadata.annotations["+key+"]", d.out.Annotations[key],
				d.controller+" copies it to its PodGroup, Tideline does not; it is left out",
				"the queue follows from the namespace's annotation scheduling.volcano.sh/queue-name")
			delete(d.out.Annotations, key)
		}
	}
	if queue, ok := in.Labels[kueueQueueLabel]; ok {
		d.note("metadata.labels["+kueueQueueLabel+"]", queue,
			"Kueue admits "+d.kind+"s, and does not know ElasticTrainingJobs; it is left out, because Tideline would wait for Kueue",
			"give the namespace a Volcano Queue by its annotation scheduling.volcano.sh/queue-name")
		delete(d.out.Labels, kueueQueueLabel)
	}
	if len(in.OwnerReferences) > 0 {
		d.note("metadata.ownerReferences", in.OwnerReferences[0].Kind+"/"+in.OwnerReferences[0].Name,
			"an owner is the business of who creates the job; it is left out",
			"let the owner create the ElasticTrainingJob")
	}
	if len(in.Finalizers) > 0 {
		d.note("metadata.finalizers", in.Finalizers, "a finalizer is for a controller of "+d.kind+"s; it is left out", "")
	}
}

// runs says that a job which has a status is not taken over, and why both cannot be there at once.
func (d *draft) runs(state, because string) {
	d.note("status", state, "the status is left out, and the training that runs is not taken over: "+because,
		"delete the "+d.kind+" and its pods before you create the ElasticTrainingJob")
}

// kueueQueueLabel is how a job names its LocalQueue of Kueue.
const kueueQueueLabel = "kueue.x-k8s.io/queue-name"

// Of a job's longest host name, NAME-worker-INDEX, what is not its name and index; and what Kubernetes appends to generateName.
const (
	hostNameOverhead = len("-worker-")
	longestHostName  = 63
	generatedSuffix  = "xxxxx"
)

// name says which names will be refused. The rules are those of the CustomResourceDefinition.
func (d *draft) name() {
	path, name := "metadata.name", d.out.Name
	if name == "" {
		path, name = "metadata.generateName", d.out.GenerateName+generatedSuffix
	}
	index := strconv.Itoa(int(d.out.Spec.MaxReplicas) - 1)
	if room := longestHostName - hostNameOverhead - len(index); len(name) > room {
		d.refuse(path, name, fmt.Sprintf("the name will be refused: the longest host name, NAME-worker-%s, would have %d characters"+
			" and may have %d", index, len(name)+hostNameOverhead+len(index), longestHostName),
			fmt.Sprintf("shorten the name to %d characters", room))
	}
	for i := range d.out.Spec.Roles {
		role := d.out.Spec.Roles[i].Name
		if room := longestHostName - len("-"+role+"-31"); len(name) > room {
			d.refuse(path, name, fmt.Sprintf("the name will be refused: the host name NAME-%s-31 may have %d characters", role,
				longestHostName), fmt.Sprintf("shorten the name to %d characters", room))
		}
	}
	if !dns1035.MatchString(name) {
		d.refuse(path, name, "the name will be refused, because it becomes part of host names",
			"use lower-case letters, digits and dashes, begin with a letter, and leave out dots")
	}
	if strings.HasSuffix(name, "-surplus") || strings.HasSuffix(name, "-merge") {
		d.refuse(path, name, "the name will be refused, because the PodGroups of other jobs may have it",
			"let it end in something else than -surplus and -merge")
	}
}

// atMost is a value, or the largest that is possible, which is noted.
func (d *draft) atMost(path string, value, most int64) *int32 {
	if value > most {
		d.note(path, value, fmt.Sprintf("it may be %d at most, and is %d now", most, most), "")
		value = most
	}
	return ptr.To(int32(value))
}

// fromTemplate begins the workers' template with that of the job, without what an ElasticTrainingJob refuses.
func (d *draft) fromTemplate(path string, in *corev1.PodTemplateSpec) {
	out := &d.out.Spec.Template
	out.ObjectMeta = metav1.ObjectMeta{Labels: maps.Clone(in.Labels), Annotations: maps.Clone(in.Annotations)}
	out.Spec = *in.Spec.DeepCopy()
	d.templateMetadata(path+".metadata", in)
	d.decidedFields(path+".spec", &out.Spec)
}

// trainer is the training container of the result.
func (d *draft) trainer() *corev1.Container { return trainingContainer(&d.out.Spec.Template.Spec) }

// trainingContainer is the one of a pod that trains.
func trainingContainer(spec *corev1.PodSpec) *corev1.Container {
	return &spec.Containers[rendezvous.TrainerIndex(spec.Containers)]
}

// setEnv sets a variable of the training container, whatever the template says.
func (d *draft) setEnv(name, value string) {
	t := d.trainer()
	t.Env = slices.DeleteFunc(t.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	t.Env = append(t.Env, corev1.EnvVar{Name: name, Value: value})
}

// setDefaultEnv sets a variable of the training container unless the template does.
func (d *draft) setDefaultEnv(name, value string) {
	if !slices.ContainsFunc(d.trainer().Env, func(e corev1.EnvVar) bool { return e.Name == name }) {
		d.setEnv(name, value)
	}
}

func isVolcanoAnnotation(key string) bool {
	return strings.HasPrefix(key, "volcano.sh/") || strings.HasPrefix(key, "scheduling.volcano.sh/") ||
		strings.HasPrefix(key, "scheduling.k8s.io/")
}

// letThrough are annotations of pods that Volcano's plugins read, and that templates may have.
var letThrough = []string{"volcano.sh/vgpu-mode", "volcano.sh/vgpu-podgroup-policy", numaPolicy}

func (d *draft) templateMetadata(path string, in *corev1.PodTemplateSpec) {
	const meaning, do = "Tideline speaks to Volcano for its pods; it is left out", "see docs/convert.md for what takes its place"
	out := &d.out.Spec.Template
	for _, key := range sortedKeys(in.Annotations) {
		if isVolcanoAnnotation(key) && !slices.Contains(letThrough, key) || strings.HasPrefix(key, "tideline.io/") {
			d.note(path+".annotations["+key+"]", in.Annotations[key], meaning, do)
			delete(out.Annotations, key)
		}
	}
	for _, key := range sortedKeys(in.Labels) {
		if strings.HasPrefix(key, "volcano.sh/") || strings.HasPrefix(key, "tideline.io/") {
			d.note(path+".labels["+key+"]", in.Labels[key], meaning, do)
			delete(out.Labels, key)
		}
	}
	if len(in.Finalizers) > 0 {
		d.note(path+".finalizers", in.Finalizers, "Tideline's pods have no finalizers; they are left out", "")
	}
}

// decidedFields takes out what Tideline decides and an ElasticTrainingJob refuses. Who calls it has spoken of restartPolicy.
func (d *draft) decidedFields(path string, spec *corev1.PodSpec) {
	const tier = "the priority follows from the tier; it is left out"
	drop := func(name string, field *string, meaning, do string) {
		if *field != "" {
			d.note(path+"."+name, *field, meaning, do)
			*field = ""
		}
	}
	if spec.SchedulerName == "volcano" {
		spec.SchedulerName = ""
	}
	drop("schedulerName", &spec.SchedulerName, "Tideline schedules with Volcano; it is left out", "")
	drop("priorityClassName", &spec.PriorityClassName, tier, setTier)
	if spec.Priority != nil {
		d.note(path+".priority", *spec.Priority, tier, setTier)
		spec.Priority = nil
	}
	if spec.PreemptionPolicy != nil {
		d.note(path+".preemptionPolicy", *spec.PreemptionPolicy, tier, setTier)
		spec.PreemptionPolicy = nil
	}
	drop("nodeName", &spec.NodeName, "it would bypass the scheduler; it is left out",
		"use nodeSelector, for example kubernetes.io/hostname")
	if len(spec.SchedulingGates) > 0 {
		d.note(path+".schedulingGates", spec.SchedulingGates, "Volcano places no pod that a gate holds; they are left out",
			"set spec.suspend to hold the job back")
		spec.SchedulingGates = nil
	}
	drop("hostname", &spec.Hostname, "each worker has the name of its pod, NAME-worker-INDEX; it is left out", "")
	drop("subdomain", &spec.Subdomain, "it is the job's headless Service, NAME-workers; it is left out", "")
	spec.RestartPolicy = ""
}

// setTier is what to do about a priority.
const setTier = "set spec.tier, for example exploratory, small-traffic or main-traffic"

// environment takes out the variables of a container by which torchrun is told what Tideline tells it.
func (d *draft) environment(templatePath string, container *corev1.Container) {
	path := templatePath + ".spec.containers[" + container.Name + "].env"
	container.Env = slices.DeleteFunc(container.Env, func(e corev1.EnvVar) bool {
		if !slices.Contains(reserved, e.Name) && !slices.Contains(displaced, e.Name) {
			return false
		}
		var value any = e.Value
		if e.ValueFrom != nil {
			value = e.ValueFrom
		}
		d.note(path+"["+e.Name+"]", value, "torchrun and Tideline set it; it is left out", "")
		return true
	})
}

// templateLimits says where a template is larger than an ElasticTrainingJob's may be. The containers' names are those they had.
func (d *draft) templateLimits(path string, in []corev1.Container) {
	out := d.out.Spec.Template.Spec.Containers
	if n := len(d.out.Spec.Template.Spec.NodeSelector); n > maxNodeLabels {
		d.refuse(path+".spec.nodeSelector", n, fmt.Sprintf(
			"a template may select nodes by %d labels; it will be refused", maxNodeLabels), "give nodes one label that says the same")
	}
	if n := len(out); n > maxContainers {
		d.refuse(path+".spec.containers", n, fmt.Sprintf("a template may have %d containers; it will be refused", maxContainers),
			"join some of them")
	}
	for i := range out {
		if n := len(out[i].Env); n > maxEnv {
			d.refuse(path+".spec.containers["+in[i].Name+"].env", n, fmt.Sprintf(
				"a container may have %d variables, those that are added here included; it will be refused", maxEnv),
				"put them into a ConfigMap and name it in envFrom")
		}
	}
}

// topology carries over Volcano's network topology.
func (d *draft) topology(path string, t *batch.NetworkTopologySpec) {
	switch {
	case t == nil:
	case t.Mode == batch.SoftNetworkTopologyMode:
		d.out.Spec.NetworkTopology = &v1beta1.NetworkTopology{Mode: v1beta1.TopologySoft}
	case t.HighestTierAllowed != nil && *t.HighestTierAllowed <= maxTier:
		d.out.Spec.NetworkTopology = &v1beta1.NetworkTopology{
			Mode: v1beta1.TopologyHard, HighestTierAllowed: ptr.To(int32(*t.HighestTierAllowed)),
		}
	case t.HighestTierName != "":
		d.note(path+".highestTierName", t.HighestTierName, "Tideline knows tiers by their number; the topology is left out",
			"set spec.networkTopology with highestTierAllowed: `kubectl get hypernodes` lists tiers")
	default:
		d.note(path, t, fmt.Sprintf("mode hard needs a tier of 0 to %d; it is left out", maxTier),
			"set spec.networkTopology with highestTierAllowed, or with mode Soft")
	}
}

// maxTier bounds spec.networkTopology.highestTierAllowed.
const maxTier = 100
