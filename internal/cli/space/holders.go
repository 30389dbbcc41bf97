package space

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// holders are the kinds, beside Tideline's own, whose objects may name claims. Any that is there counts, ended or not, since each
// has its own word for an end. A kind that the cluster does not serve has no objects.
var holders = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "ReplicationController"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "batch", Version: "v1", Kind: "Job"}, {Group: "batch", Version: "v1", Kind: "CronJob"},
	{Group: "batch.volcano.sh", Version: "v1alpha1", Kind: "Job"}, {Group: "batch.volcano.sh", Version: "v1alpha1", Kind: "CronJob"},
	{Group: "flow.volcano.sh", Version: "v1alpha1", Kind: "JobTemplate"},
	{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}, {Group: "kubeflow.org", Version: "v1", Kind: "TFJob"},
	{Group: "kubeflow.org", Version: "v1", Kind: "MPIJob"}, {Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"},
	{Group: "kubeflow.org", Version: "v1", Kind: "XGBoostJob"}, {Group: "kubeflow.org", Version: "v1", Kind: "PaddleJob"},
	{Group: "kubeflow.org", Version: "v1", Kind: "JAXJob"}, {Group: "kubeflow.org", Version: "v1", Kind: "Notebook"},
	{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"},
	{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainingRuntime"},
	{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"},
	{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"},
	{Group: "ray.io", Version: "v1", Kind: "RayCluster"}, {Group: "ray.io", Version: "v1", Kind: "RayJob"},
	{Group: "ray.io", Version: "v1", Kind: "RayService"},
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
