package capacity

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Which NUMA node has what is free is known to Volcano alone.
func TestPoliciesOfNUMAAreNotJudged(t *testing.T) {
	for policy, unmodelled := range map[string]string{
		"": "", "none": "", "best-effort": NUMA, "restricted": NUMA, "single-numa-node": NUMA,
	} {
		of := &metav1.ObjectMeta{Namespace: "ads", Annotations: map[string]string{"volcano.sh/numa-topology-policy": policy}}
		NewWithT(t).Expect(ShapeOf(of, &corev1.PodSpec{}, nil, nil).Unmodelled).To(Equal(unmodelled), "%q", policy)
	}
}
