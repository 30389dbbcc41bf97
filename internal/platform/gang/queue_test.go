package gang

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

func TestPoolIsWhatItsManifestSays(t *testing.T) {
	g := NewWithT(t)
	applied := &schedulingv1beta1.Queue{}
	g.Expect(yaml.UnmarshalStrict([]byte(PoolManifest("merge")), applied)).To(Succeed())
	created := NewPool("merge").(*schedulingv1beta1.Queue)
	created.TypeMeta = applied.TypeMeta
	g.Expect(created).To(Equal(applied))
}
