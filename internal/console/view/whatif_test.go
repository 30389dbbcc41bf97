package view

import (
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/internal/platform/config"
)

func TestWhatIsAskedAbout(t *testing.T) {
	g := NewWithT(t)
	cfg := config.DefaultConfiguration()
	w := NewWhatIf(nil, cfg)
	g.Expect(w.Job).To(BeNil(), "nothing is asked yet")
	g.Expect(w.Wrong).To(BeEmpty())

	query := url.Values{"namespace": {"ads"}}
	for _, f := range w.Fields[1:] {
		query.Set(f.Name, f.Value)
	}
	w = NewWhatIf(query, cfg)
	g.Expect(w.Wrong).To(BeEmpty(), "what the form has at first is right")
	g.Expect(w.Job.Namespace).To(Equal("ads"))
	g.Expect(w.Job.Spec.MinReplicas).To(BeEquivalentTo(2))
	g.Expect(w.Job.Spec.Template.Spec.Containers[0].Resources.Requests).To(Equal(corev1.ResourceList{
		"nvidia.com/gpu": *resource.NewQuantity(1, resource.DecimalSI),
		"cpu":            resource.MustParse("4"), "memory": resource.MustParse("16Gi"),
	}))

	for field, c := range map[string]struct{ value, says string }{
		"namespace":    {"Ads!", `Namespace: "Ads!" is not the name of a namespace.`},
		"workers":      {"0", `Core workers (minReplicas): "0" is not a whole number from 1 to 4096.`},
		"accelerators": {"-1", `Accelerators of each: "-1" is not a whole number from 0 to 1024.`},
		"resource":     {"cpu", `Which: "cpu" is not one of `},
		"cpu":          {"much", `CPU of each: "much" is not an amount up to 1024, such as 4 or 500m.`},
		"memory":       {"3Ti", `Memory of each: "3Ti" is not an amount up to 2Ti, such as 16Gi.`},
		"tier":         {strings.Repeat("x", 1000), `is not a tier of the operator's configuration.`},
	} {
		before := query.Get(field)
		query.Set(field, c.value)
		w := NewWhatIf(query, cfg)
		g.Expect(w.Wrong).To(ConsistOf(ContainSubstring(c.says)), field)
		g.Expect(len(w.Wrong[0])).To(BeNumerically("<", 400), field)
		g.Expect(w.Job).To(BeNil(), field)
		query.Set(field, before)
	}
}

// A few characters must not take all memory.
func TestExponentsAreNotComputed(t *testing.T) {
	for _, value := range []string{"1e999999999", "1e-999999999", "1E18", strings.Repeat("9", 250)} {
		w := NewWhatIf(url.Values{"memory": {value}}, config.DefaultConfiguration())
		NewWithT(t).Expect(w.Wrong).To(ContainElement(HavePrefix("Memory of each: ")), value)
	}
}
