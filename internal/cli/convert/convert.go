// Package convert turns jobs of others into ElasticTrainingJobs, and says what it could not carry over: PyTorchJobs of
// training-operator (kubeflow.org/v1), Volcano's Jobs, MPIJobs of MPI operator (kubeflow.org/v2beta1) and TrainJobs of trainer
// (trainer.kubeflow.org/v1alpha1). It is the only package that knows their types. What it says about them is read from the
// sources: of training-operator v1.9.3 pkg/controller.v1/pytorch, pkg/controller.v1/common, pkg/core and pkg/webhooks/pytorch;
// of Volcano v1.15.1 pkg/controllers/job and pkg/webhooks/admission/jobs; of MPI operator v0.8.2 pkg/controller and
// pkg/apis/kubeflow/v2beta1; of trainer v2.3.0 pkg/runtime.
package convert

import (
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// conversion is one PyTorchJob on its way.
type conversion struct {
	draft
	in *kubeflowv1.PyTorchJob
}

// FromPyTorchJob returns the ElasticTrainingJob that trains as the PyTorchJob does, and a note for each field that is not
// carried over or that changes its meaning. Without an ElasticTrainingJob, each note says what keeps the PyTorchJob from being
// converted. The PyTorchJob is not changed.
func FromPyTorchJob(job *kubeflowv1.PyTorchJob) (*v1beta1.ElasticTrainingJob, []Note) {
	if problems := validate(job); len(problems) > 0 {
		return nil, problems
	}
	c := &conversion{draft: newDraft("training-operator", kubeflowv1.PyTorchJobKind), in: job.DeepCopy()}
	c.metadata(&c.in.ObjectMeta)
	if n := len(c.in.Status.Conditions); n > 0 {
		c.runs(string(c.in.Status.Conditions[n-1].Type), "pods of both have the same names")
	}
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
