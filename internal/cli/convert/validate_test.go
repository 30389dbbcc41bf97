package convert

import (
	"testing"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/utils/ptr"
)

func TestNotConverted(t *testing.T) {
	spec := func(r kubeflowv1.ReplicaType, edit func(*kubeflowv1.ReplicaSpec)) func(*pytorchJob) {
		return func(j *pytorchJob) { edit(j.Spec.PyTorchReplicaSpecs[r]) }
	}
	for name, c := range map[string]struct {
		edit func(*pytorchJob)
		says string
	}{
		"no name": {func(j *pytorchJob) { j.Name = "" }, "metadata.name is not set: a job needs a name; set it"},
		"no roles": {func(j *pytorchJob) { j.Spec.PyTorchReplicaSpecs = nil }, "spec.pytorchReplicaSpecs is not set: " +
			"there is neither a Master nor a Worker to convert; give the job workers"},
		"another role": {func(j *pytorchJob) { j.Spec.PyTorchReplicaSpecs["worker"] = role(1) },
			"spec.pytorchReplicaSpecs[worker] = worker: training-operator knows the roles Master and Worker; name it so"},
		"an empty role": {func(j *pytorchJob) { j.Spec.PyTorchReplicaSpecs[worker] = nil }, workerPath + " is not set: the " +
			"role is named and says nothing; give it a template, or remove it"},
		"two Masters": {spec(master, func(s *kubeflowv1.ReplicaSpec) { s.Replicas = ptr.To[int32](2) }),
			masterPath + ".replicas = 2: training-operator refuses any number of Masters but 1; set 1"},
		"no worker": {spec(worker, func(s *kubeflowv1.ReplicaSpec) { s.Replicas = ptr.To[int32](0) }),
			workerPath + ".replicas = 0: training-operator refuses fewer workers than 1; set 1 or more, or remove Worker"},
		"many workers": {spec(worker, func(s *kubeflowv1.ReplicaSpec) { s.Replicas = ptr.To[int32](4096) }),
			workerPath + ".replicas = 4097: a job may have 4096 workers, Master included; ask for fewer"},
		"no containers": {spec(worker, func(s *kubeflowv1.ReplicaSpec) { s.Template.Spec.Containers = nil }),
			workerPath + ".template.spec.containers = []: training-operator refuses a template without a container named pytorch; " +
				"name the container that trains so"},
		"another name": {spec(master, func(s *kubeflowv1.ReplicaSpec) { s.Template.Spec.Containers[0].Name = "main" }),
			masterPath + `.template.spec.containers = ["main"]: training-operator refuses a template without a container named ` +
				`pytorch; name the container that trains so`},
		"restart policy": {spec(worker, func(s *kubeflowv1.ReplicaSpec) { s.RestartPolicy = "Sometimes" }),
			workerPath + ".restartPolicy = Sometimes: training-operator does not know it; use OnFailure, Never, Always or ExitCode"},
		"elastic without workers": {func(j *pytorchJob) {
			elastic(j)
			j.Spec.PyTorchReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{master: role(1)}
		}, workerPath + " is not set: training-operator refuses an elasticPolicy without workers; set it"},
		"processes twice": {func(j *pytorchJob) {
			elastic(j).NProcPerNode = ptr.To[int32](1)
			j.Spec.NprocPerNode = ptr.To("1")
		},
			"spec.elasticPolicy.nProcPerNode = 1: training-operator refuses it beside spec.nprocPerNode; remove it"},
		"none at least": {func(j *pytorchJob) { elastic(j).MinReplicas = ptr.To[int32](0) }, "spec.elasticPolicy.minReplicas = " +
			"0: torchrun refuses to train with no worker; set 1 or more"},
		"none at least, with a Master": {func(j *pytorchJob) {
			elastic(j).MinReplicas = ptr.To[int32](0)
			j.Spec.PyTorchReplicaSpecs[master] = role(1)
		}, "spec.elasticPolicy.minReplicas = 0: torchrun refuses to train with no worker; set 1 or more"},
		"range": {func(j *pytorchJob) { elastic(j).MinReplicas = ptr.To[int32](4) }, "spec.elasticPolicy.minReplicas " +
			"= 4: it exceeds maxReplicas (3); lower minReplicas or raise maxReplicas"},
		"a long range": {func(j *pytorchJob) { elastic(j).MaxReplicas = ptr.To[int32](4097) },
			"spec.elasticPolicy.maxReplicas = 4097: a job may have 4096 workers, Master included; ask for fewer"},
		"cleanPodPolicy": {func(j *pytorchJob) { j.Spec.RunPolicy.CleanPodPolicy = ptr.To(kubeflowv1.CleanPodPolicy("Some")) },
			"spec.runPolicy.cleanPodPolicy = Some: training-operator does not know it; use None, Running or All"},
		"managedBy": {func(j *pytorchJob) { j.Spec.RunPolicy.ManagedBy = ptr.To("me") }, "spec.runPolicy.managedBy = me: " +
			"training-operator refuses it; remove it, or use kueue.x-k8s.io/multikueue"},
		"ttl": {func(j *pytorchJob) { j.Spec.RunPolicy.TTLSecondsAfterFinished = ptr.To[int32](-1) },
			"spec.runPolicy.ttlSecondsAfterFinished = -1: it must be 0 or more; raise or remove it"},
		"deadline": {func(j *pytorchJob) { j.Spec.RunPolicy.ActiveDeadlineSeconds = ptr.To[int64](0) },
			"spec.runPolicy.activeDeadlineSeconds = 0: it must be 1 or more; raise or remove it"},
		"backoffLimit": {func(j *pytorchJob) { j.Spec.RunPolicy.BackoffLimit = ptr.To[int32](-1) },
			"spec.runPolicy.backoffLimit = -1: it must be 0 or more; raise or remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			j := good()
			c.edit(j)
			out, notes := FromPyTorchJob(j)
			if out != nil || len(notes) != 1 || notes[0].String() != c.says {
				t.Errorf("Convert(...) = %v\n\t%v\nwant nothing, and\n\t%s", out, notes, c.says)
			}
		})
	}
}
