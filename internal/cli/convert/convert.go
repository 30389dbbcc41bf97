// Package convert turns PyTorchJobs of training-operator (kubeflow.org/v1) into ElasticTrainingJobs, and says what it could
// not carry over. It is the only package that knows training-operator's types. What it says about training-operator is read
// from the sources of v1.9.3: pkg/controller.v1/pytorch, pkg/controller.v1/common, pkg/core and pkg/webhooks/pytorch.
package convert

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// conversion is one PyTorchJob on its way.
type conversion struct {
	in    *kubeflowv1.PyTorchJob
	out   *v1alpha1.ElasticTrainingJob
	notes []Note
}

// FromPyTorchJob returns the ElasticTrainingJob that trains as the PyTorchJob does, and a note for each field that is not
// carried over or that changes its meaning. Without an ElasticTrainingJob, each note says what keeps the PyTorchJob from being
// converted. The PyTorchJob is not changed.
func FromPyTorchJob(job *kubeflowv1.PyTorchJob) (*v1alpha1.ElasticTrainingJob, []Note) {
	if problems := validate(job); len(problems) > 0 {
		return nil, problems
	}
	c := &conversion{in: job.DeepCopy(), out: &v1alpha1.ElasticTrainingJob{}}
	c.metadata()
	c.replicas()
	c.template()
	c.master()
	c.processes()
	c.rendezvous()
	c.runPolicy()
	c.failurePolicy()
	c.launch()
	c.limits()
	c.name()
	return c.out, c.notes
}

// note records that a field is not carried over or changes its meaning.
func (c *conversion) note(path string, value any, meaning, do string) {
	c.notes = append(c.notes, newNote(path, value, meaning, do))
}

// refuse records what the API server will refuse in the result.
func (c *conversion) refuse(path string, value any, meaning, do string) {
	n := newNote(path, value, meaning, do)
	n.Refused = true
	c.notes = append(c.notes, n)
}

// metadata carries over what people wrote about the job, and leaves behind what the API server wrote.
func (c *conversion) metadata() {
	in := &c.in.ObjectMeta
	c.out.TypeMeta = metav1.TypeMeta{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ElasticTrainingJobKind,
	}
	c.out.Namespace, c.out.Name, c.out.GenerateName = in.Namespace, in.Name, in.GenerateName
	c.out.Labels, c.out.Annotations = maps.Clone(in.Labels), maps.Clone(in.Annotations)
	delete(c.out.Annotations, corev1.LastAppliedConfigAnnotation)
	for _, key := range sortedKeys(c.out.Annotations) {
		if isVolcanoAnnotation(key) {
			c.note("metadata.annotations["+key+"]", c.out.Annotations[key],
				"training-operator copies it to its PodGroup, Tideline does not; it is left out",
				"the queue follows from the namespace's annotation scheduling.volcano.sh/queue-name")
			delete(c.out.Annotations, key)
		}
	}
	if queue, ok := in.Labels[kueueQueueLabel]; ok {
		c.note("metadata.labels["+kueueQueueLabel+"]", queue,
			"Kueue admits PyTorchJobs, and does not know ElasticTrainingJobs; it is left out, because Tideline would wait for Kueue",
			"give the namespace a Volcano Queue by its annotation scheduling.volcano.sh/queue-name")
		delete(c.out.Labels, kueueQueueLabel)
	}
	if len(in.OwnerReferences) > 0 {
		c.note("metadata.ownerReferences", in.OwnerReferences[0].Kind+"/"+in.OwnerReferences[0].Name,
			"an owner is the business of who creates the job; it is left out",
			"let the owner create the ElasticTrainingJob")
	}
	if len(in.Finalizers) > 0 {
		c.note("metadata.finalizers", in.Finalizers, "a finalizer is for a controller of PyTorchJobs; it is left out", "")
	}
	if len(c.in.Status.Conditions) > 0 {
		last := c.in.Status.Conditions[len(c.in.Status.Conditions)-1]
		c.note("status", last.Type,
			"the status is left out, and the training that runs is not taken over: pods of both have the same names",
			"delete the PyTorchJob and its pods before you create the ElasticTrainingJob")
	}
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
func (c *conversion) name() {
	path, name := "metadata.name", c.out.Name
	if name == "" {
		path, name = "metadata.generateName", c.out.GenerateName+generatedSuffix
	}
	index := strconv.Itoa(int(c.out.Spec.MaxReplicas) - 1)
	if room := longestHostName - hostNameOverhead - len(index); len(name) > room {
		c.refuse(path, name, fmt.Sprintf("the name will be refused: the longest host name, NAME-worker-%s, would have %d characters"+
			" and may have %d", index, len(name)+hostNameOverhead+len(index), longestHostName),
			fmt.Sprintf("shorten the name to %d characters", room))
	}
	if !dns1035.MatchString(name) {
		c.refuse(path, name, "the name will be refused, because it becomes part of host names",
			"use lower-case letters, digits and dashes, begin with a letter, and leave out dots")
	}
	if strings.HasSuffix(name, "-surplus") || strings.HasSuffix(name, "-merge") {
		c.refuse(path, name, "the name will be refused, because the PodGroups of other jobs may have it",
			"let it end in something else than -surplus and -merge")
	}
}
