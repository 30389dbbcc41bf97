package arbiter

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// mount has the job's workers mount a claim, which the fixture has in the namespace of the job, bound to a volume that can be
// used from some nodes, or from all.
func (s *fixture) mount(
	job *v1beta1.ElasticTrainingJob, nodes ...string,
) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	job.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "v", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	if len(nodes) > 0 {
		volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: "nvidia.com/gpu.product", Operator: corev1.NodeSelectorOpIn, Values: nodes,
			}}}},
		}}
	}
	s.objects = append(s.objects, claim, volume)
	return claim, volume
}

func TestGangsAreJudgedWithTheirVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		nodes  []string
		change func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)
		// largest is the largest gang that fits.
		largest int32
		unknown string
	}{
		"from every node":  {largest: 24},
		"from some nodes":  {nodes: []string{"A100"}, largest: 8},
		"from other nodes": {nodes: []string{"B200"}},
		"from some zones": {
			change: func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
				v.Labels = map[string]string{corev1.LabelTopologyZone: "a__b"}
			},
			largest: 8,
		},
		"being deleted": {
			change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
				c.Finalizers, c.DeletionTimestamp = []string{"kubernetes.io/pvc-protection"}, &metav1.Time{Time: now}
			},
			unknown: "a PersistentVolumeClaim that is being deleted",
		},
		"not bound": {
			change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
				c.Status.Phase = corev1.ClaimPending
			},
			unknown: "a PersistentVolumeClaim that is not bound",
		},
		"of one node at a time": {
			change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
				c.Spec.AccessModes = c.Spec.AccessModes[:1]
			},
			unknown: "a PersistentVolumeClaim that one node at a time may use",
		},
		"of another namespace": {
			change:  func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Namespace = "others" },
			unknown: "a PersistentVolumeClaim that does not exist",
		},
		"lost": {
			change:  func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Name = "another" },
			unknown: "a PersistentVolumeClaim whose volume is lost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newFixture(t)
			s.node("A100")
			s.node("H100")
			s.objects[len(s.objects)-1].GetLabels()[corev1.LabelTopologyZone] = "b"
			claim, volume := s.mount(s.job("ctr", 2, 0), c.nodes...)
			if c.change != nil {
				c.change(claim, volume)
			}
			answer := s.judge().Answer
			g.Expect(answer.Unknown).To(Equal(c.unknown))
			g.Expect(answer.Largest).To(Equal(c.largest))
			g.Expect(answer.Fits).To(Equal(c.largest > 0))
		})
	}
}
