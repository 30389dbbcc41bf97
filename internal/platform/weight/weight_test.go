package weight

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func TestWeightIsWhatMemoryItTakes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Of(nil)).To(BeZero())
	g.Expect(Of("abc")).To(Equal(16 + 3))
	g.Expect(Of([]byte{1, 2})).To(Equal(24 + 2))
	g.Expect(Of(map[string]string{"ab": "c"})).To(Equal(8 + 32 + 3))
	g.Expect(Of(ptr.To[int64](1))).To(Equal(8 + 8))
	g.Expect(Of((*int64)(nil))).To(Equal(8))

	for what, c := range map[string]func() *corev1.PodSpec{
		"texts": func() *corev1.PodSpec {
			return &corev1.PodSpec{Containers: []corev1.Container{{Image: strings.Repeat("x", 1<<20)}}}
		},
		"many variables": func() *corev1.PodSpec {
			c := corev1.Container{}
			for i := range 20_000 {
				c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("v", i)})
			}
			return &corev1.PodSpec{Containers: []corev1.Container{c}}
		},
		"many requests": func() *corev1.PodSpec {
			requests := corev1.ResourceList{}
			for i := range 5_000 {
				requests[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
			}
			return &corev1.PodSpec{Overhead: requests}
		},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		spec := c()
		runtime.GC()
		runtime.ReadMemStats(&after)
		takes := int(after.HeapAlloc) - int(before.HeapAlloc)
		g.Expect(Of(spec)).To(And(BeNumerically(">", takes/3), BeNumerically("<", takes*3)), what)
	}
}
