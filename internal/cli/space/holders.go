package space

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// holders are the kinds, beside Tideline's own, whose objects may name claims, in whichever version the cluster serves. Any that
// is there counts, ended or not, since each has its own word for an end. A kind that the cluster does not serve has no objects.
var holders = []schema.GroupKind{
	{Kind: "Pod"}, {Kind: "ReplicationController"},
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
	{Group: "apps", Kind: "ReplicaSet"}, {Group: "batch", Kind: "Job"}, {Group: "batch", Kind: "CronJob"},
	{Group: "batch.volcano.sh", Kind: "Job"}, {Group: "batch.volcano.sh", Kind: "CronJob"},
	{Group: "flow.volcano.sh", Kind: "JobTemplate"},
	{Group: "kubeflow.org", Kind: "PyTorchJob"}, {Group: "kubeflow.org", Kind: "TFJob"}, {Group: "kubeflow.org", Kind: "MPIJob"},
	{Group: "kubeflow.org", Kind: "XGBoostJob"}, {Group: "kubeflow.org", Kind: "PaddleJob"},
	{Group: "kubeflow.org", Kind: "JAXJob"}, {Group: "kubeflow.org", Kind: "Notebook"},
	{Group: "trainer.kubeflow.org", Kind: "TrainJob"}, {Group: "trainer.kubeflow.org", Kind: "TrainingRuntime"},
	{Group: "jobset.x-k8s.io", Kind: "JobSet"}, {Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"},
	{Group: "ray.io", Kind: "RayCluster"}, {Group: "ray.io", Kind: "RayJob"}, {Group: "ray.io", Kind: "RayService"},
}

// claimsIn are the names of the claims that an object of any kind names: in the volumes of pods wherever they are in it, and in
// those of Volcano's Jobs.
func claimsIn(o map[string]any) []string {
	var names []string
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, in := range v {
				if name, is := in.(string); is && (key == "claimName" || key == "volumeClaimName") {
					names = append(names, name)
				}
				walk(in)
			}
		case []any:
			for _, in := range v {
				walk(in)
			}
		}
	}
	walk(o)
	slices.Sort(names)
	return slices.Compact(names)
}
