package kube

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/platform/weight"
)

// Of objects that a tenant makes look like ours the cache keeps little, however large they are.
func TestWhatOthersWriteTakesNoMemory(t *testing.T) {
	g := NewWithT(t)
	large := strings.Repeat("x", 1<<20)
	owner := metav1.OwnerReference{
		APIVersion: "tideline.io/v1beta1", Kind: "ElasticTrainingJob", Name: "a", UID: "a", Controller: ptr.To(true),
	}
	meta := metav1.ObjectMeta{
		Namespace: "ads", Name: "a", UID: "1", ResourceVersion: "7",
		Labels:          map[string]string{v1beta1.LabelJob: "a", "team": "ads"},
		Annotations:     map[string]string{"note": large, "tideline.io/x": large},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Other", Name: large}, owner},
		Finalizers:      []string{large},
	}
	kept := metav1.ObjectMeta{
		Namespace: "ads", Name: "a", UID: "1", ResourceVersion: "7", Labels: map[string]string{v1beta1.LabelJob: "a"},
		OwnerReferences: []metav1.OwnerReference{owner, {Name: weight.Oversized}},
	}
	strip := StripConfigMap([]string{"hosts", "hostfile"})
	g.Expect(strip(&corev1.ConfigMap{
		ObjectMeta: meta, Data: map[string]string{"hosts": large, large: large}, BinaryData: map[string][]byte{"hosts": []byte(large)},
	})).To(Equal(&corev1.ConfigMap{ObjectMeta: kept, Data: map[string]string{"hosts": text.Digest(large)}}))
	g.Expect(StripService(&corev1.Service{
		ObjectMeta: meta, Spec: corev1.ServiceSpec{ExternalName: large},
	})).To(Equal(&corev1.Service{ObjectMeta: kept}))

	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		corev1.LastAppliedConfigAnnotation: large, "note": "mine", v1beta1.AnnotationOwner: "alice", "tideline.io/x": large,
		"scheduling.volcano.sh/queue-name": "ads",
	}}}
	g.Expect(StripMetadata(job)).To(HaveField("Annotations", Equal(map[string]string{
		v1beta1.AnnotationOwner: "alice", "scheduling.volcano.sh/queue-name": "ads", "note": "mine",
	})))
}

// An annotation has an object looked at again, so a few short ones of others are kept.
func TestFewAnnotationsOfOthersAreKept(t *testing.T) {
	g := NewWithT(t)
	job := &v1beta1.ElasticTrainingJob{}
	job.Annotations = map[string]string{"a.long": strings.Repeat("x", shortOfOthers)}
	for i := range 100 {
		job.Annotations[fmt.Sprintf("example.com/%02d", i)] = "x"
	}
	stripped, err := StripMetadata(job)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stripped.(*v1beta1.ElasticTrainingJob).Annotations).To(And(
		HaveLen(mostOfOthers), HaveKey("example.com/00"), HaveKey("example.com/15"), Not(HaveKey("a.long"))))
}
