package pytorchjob

import (
	"encoding/json"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// tfConfig is TF_CONFIG as TensorFlow reads it.
type tfConfig struct {
	Cluster map[string][]string `json:"cluster"`
	Task    struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	} `json:"task"`
}

// told is what each task of a job is told, by its type and index, with the names of pods in place of addresses.
type told map[string]map[string][]string

// tellTale reads TF_CONFIG of pods, after the kubelet has put variables from ConfigMaps in their place.
func tellTale(s *testutil.Scenario, pods []corev1.Pod) told {
	GinkgoHelper()
	all := told{}
	for i := range pods {
		values := map[string]string{}
		for _, v := range pods[i].Spec.Containers[0].Env {
			if v.ValueFrom != nil && v.ValueFrom.ConfigMapKeyRef != nil {
				ref := v.ValueFrom.ConfigMapKeyRef
				v.Value = testutil.Get(s, &corev1.ConfigMap{}, ref.Name).Data[ref.Key]
			}
			for name, value := range values {
				v.Value = strings.ReplaceAll(v.Value, "$("+name+")", value)
			}
			values[v.Name] = v.Value
		}
		var config tfConfig
		Expect(json.Unmarshal([]byte(values["TF_CONFIG"]), &config)).To(Succeed(), "TF_CONFIG of %s: %s", pods[i].Name,
			values["TF_CONFIG"])
		cluster := map[string][]string{}
		for role, addresses := range config.Cluster {
			for _, address := range addresses {
				host, _, _ := strings.Cut(address, ".")
				Expect(pods).To(ContainElement(HaveField("ObjectMeta.Name", host)), "%s of %s is a pod's", host, address)
				cluster[role] = append(cluster[role], "a pod")
			}
		}
		if mine := config.Cluster[config.Task.Type]; mine != nil {
			Expect(mine[config.Task.Index]).To(HavePrefix(pods[i].Name+"."), "%s finds itself", pods[i].Name)
		}
		all[config.Task.Type+" "+string(rune('0'+config.Task.Index))] = cluster
	}
	return all
}

var _ = Describe("TensorFlow", func() {
	for name, replicas := range map[string]map[kubeflowv1.ReplicaType]int32{
		"workers alone": {kubeflowv1.TFJobReplicaTypeWorker: 3},
		"a chief, servers and an evaluator": {
			kubeflowv1.TFJobReplicaTypeChief: 1, kubeflowv1.TFJobReplicaTypePS: 2, kubeflowv1.TFJobReplicaTypeWorker: 2,
			kubeflowv1.TFJobReplicaTypeEval: 1,
		},
		"servers without a chief": {kubeflowv1.TFJobReplicaTypePS: 1, kubeflowv1.TFJobReplicaTypeWorker: 2},
	} {
		It("tells "+name+" of each other as training-operator does", func() {
			pod := template()
			pod.Spec.Containers[0].Name = kubeflowv1.TFJobDefaultContainerName
			theirs := &kubeflowv1.TFJob{
				TypeMeta:   metav1.TypeMeta{APIVersion: kubeflowv1.SchemeGroupVersion.String(), Kind: kubeflowv1.TFJobKind},
				ObjectMeta: metav1.ObjectMeta{Name: jobName},
				Spec:       kubeflowv1.TFJobSpec{TFReplicaSpecs: map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{}},
			}
			ours := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Name: jobName}}
			ours.Spec.Template, ours.Spec.Framework.Type = pod, v1beta1.FrameworkTensorFlow
			total := int32(0)
			for _, role := range []kubeflowv1.ReplicaType{
				kubeflowv1.TFJobReplicaTypeChief, kubeflowv1.TFJobReplicaTypePS, kubeflowv1.TFJobReplicaTypeEval,
				kubeflowv1.TFJobReplicaTypeWorker,
			} {
				n := replicas[role]
				if n == 0 {
					continue
				}
				total += n
				theirs.Spec.TFReplicaSpecs[role] = &kubeflowv1.ReplicaSpec{Replicas: ptr.To(n), Template: pod}
				if role != kubeflowv1.TFJobReplicaTypeWorker {
					ours.Spec.Roles = append(ours.Spec.Roles, v1beta1.JobRole{
						Name: strings.ToLower(string(role)), Replicas: n, Lead: role == kubeflowv1.TFJobReplicaTypeChief,
					})
				}
			}
			ours.Spec.MinReplicas, ours.Spec.MaxReplicas = total, total

			there := shared.World.NewScenario(GinkgoT(), "theirs", int64(total))
			theirs.Namespace = there.Namespace
			there.Create(theirs)
			DeferCleanup(func() { there.Delete(&kubeflowv1.TFJob{ObjectMeta: theirs.ObjectMeta}) })
			here := shared.World.NewScenario(GinkgoT(), "ours", int64(total))
			ours.Namespace = here.Namespace
			here.Create(ours)
			Eventually(here.Fetch(jobName)).Should(testutil.Train(int(total)), "ours trains")
			mine, err := here.Pods(jobName)
			Expect(err).NotTo(HaveOccurred())
			list := &corev1.PodList{}
			Eventually(func() (int, error) {
				err := there.Client.List(there.Context(), list, client.InNamespace(there.Namespace))
				list.Items = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Labels[kubeflowv1.JobNameLabel] != jobName })
				return len(list.Items), err
			}).Should(BeEquivalentTo(total), "training-operator has made its pods")
			wanted := tellTale(there, list.Items)
			for _, cluster := range wanted {
				// It lists the evaluator, which TensorFlow's guide leaves out: "evaluator" is not part of the training cluster.
				delete(cluster, "evaluator")
			}
			Expect(tellTale(here, mine)).To(Equal(wanted), "each task, and whom it is told of")
		})
	}
})
