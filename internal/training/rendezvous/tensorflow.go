package rendezvous

import (
	"encoding/json"
	"fmt"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// tfCluster is the key, and the variable, with the cluster of TF_CONFIG. The variable is not TensorFlow's: TF_CONFIG refers
// to it, so that pods do not have all names in them.
const tfCluster = "TIDELINE_TF_CLUSTER"

// clusterOf is the cluster of TF_CONFIG with the workers of these indices: for each role its addresses, in the order of their
// tasks. The evaluator is no part of it (https://www.tensorflow.org/guide/distributed_training, "TF_CONFIG").
func clusterOf(job *v1beta1.ElasticTrainingJob, indices []int32) string {
	cluster := map[string][]string{}
	for _, i := range indices {
		if role := job.Spec.SeatOf(i).Name(); role != v1beta1.RoleEvaluator {
			cluster[role] = append(cluster[role], fmt.Sprintf("%s:%d", ShortHost(job, i), PortOf(job)))
		}
	}
	text, _ := json.Marshal(cluster) // Names cannot fail to be written.
	return string(text)
}

// tfConfig is TF_CONFIG of a worker. The kubelet puts the cluster in its place.
func tfConfig(of v1beta1.Seat) string {
	return fmt.Sprintf(`{"cluster":$(%s),"task":{"type":%q,"index":%d}}`, tfCluster, of.Name(), of.Index)
}
