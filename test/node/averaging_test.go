//go:build linux

package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
)

// writer is a training that writes two checkpoints, as docs/averaging.md has it.
const writer = `
import os, sys
sys.path.insert(0, "/merge")
import report, torch
os.makedirs("/models/llm/inc", exist_ok=True)
for step in 1, 2:
    torch.save({"net": {"w": torch.full((3,), float(step))}, "step": step}, "/models/llm/inc/new")
    os.replace("/models/llm/inc/new", f"/models/llm/inc/step-{step:07d}.pt")
    report.append("llm-merge-store", "increments", f"step-{step:07d}.pt")
`

// reader prints a full model.
const reader = `
import sys, torch
print(torch.load(sys.argv[1]))
`

// averaging creates the objects of the example, its programs and a volume for its claim.
func averaging(s *testutil.Scenario) {
	GinkgoHelper()
	folder := filepath.Join("..", "..", "docs", "examples", "averaging")
	programs := &corev1.ConfigMap{Data: map[string]string{}}
	programs.Namespace, programs.Name = s.Namespace, "averaging"
	for _, file := range []string{"average.py", "report.py"} {
		content, err := os.ReadFile(filepath.Join(folder, file))
		Expect(err).NotTo(HaveOccurred())
		programs.Data[file] = string(content)
	}
	s.Create(programs)
	volume := GinkgoT().TempDir()
	Expect(os.Chmod(volume, 0o777)).To(Succeed()) // its pods may be anybody
	s.Claim("checkpoints", volume)
	content, err := os.ReadFile(filepath.Join(folder, "job.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		o := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &o.Object)).To(Succeed())
		o.SetNamespace(s.Namespace)
		switch o.GetKind() {
		case "PersistentVolumeClaim": // It is there, and bound.
		case v1beta1.MergeJobKind:
			job := &v1beta1.MergeJob{}
			Expect(yaml.UnmarshalStrict([]byte(document), job)).To(Succeed())
			job.Namespace = s.Namespace
			s.Create(job)
		default:
			s.Create(o)
		}
	}
}

// script runs Python in a pod with the programs and the volume, and returns what it said.
func script(s *testutil.Scenario, as, program string, args ...string) []string {
	GinkgoHelper()
	s.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: as},
		Spec: corev1.PodSpec{
			SchedulerName: "volcano", RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: "llm",
			Containers: []corev1.Container{{
				Name: "script", Image: trainingImage, Command: append([]string{"python3", "-c", program}, args...),
				VolumeMounts: []corev1.VolumeMount{{Name: "models", MountPath: "/models"}, {Name: "programs", MountPath: "/merge"}},
			}},
			Volumes: []corev1.Volume{
				{Name: "models", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "checkpoints"}}},
				{Name: "programs", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "averaging"}}}},
			},
		},
	})
	Eventually(func() corev1.PodPhase { return testutil.Get(s, &corev1.Pod{}, as).Status.Phase }).
		WithTimeout(2 * time.Minute).Should(Or(Equal(corev1.PodSucceeded), Equal(corev1.PodFailed)))
	pod := testutil.Get(s, &corev1.Pod{}, as)
	said, err := machine.Logs(pod, "script")
	Expect(err).NotTo(HaveOccurred())
	Expect(pod.Status.Phase).To(Equal(corev1.PodSucceeded), "%s: %v", as, said)
	return said
}

var _ = Describe("Averaging checkpoints on a real node", func() {
	It("averages what PyTorch wrote to a claim, and reports it", func() {
		s := shared.World.NewScenario(GinkgoT(), "averaging")
		averaging(s)
		Eventually(s.FetchMerge("llm")).Should(HaveField("Status.Reason", v1beta1.ReasonNoIncrements), "the report is empty")
		script(s, "writer", writer)
		Eventually(s.FetchMerge("llm")).WithTimeout(2*time.Minute).Should(HaveField("Status.History", ContainElement(
			HaveField("Outcome", v1beta1.OutcomeMerged))), "two checkpoints are enough")
		full := s.ReadMerge("llm").Status.LastFull
		Expect(full.LastIncrement).To(Equal("step-0000002.pt"))
		said := strings.Join(script(s, "reader", reader, "/models/llm/full/"+full.Name+"/model.pt"), " ")
		Expect(said).To(And(ContainSubstring("tensor([1.5000, 1.5000, 1.5000])"), ContainSubstring("'step': 2")))
	})
})
