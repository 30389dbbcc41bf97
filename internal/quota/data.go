package quota

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/quota/datasets"
)

// sayData lists the versions of the profile's data sets, with who uses them and what space they take.
func (r *review) sayData() {
	r.st.DataSets = nil
	if len(r.profile.Spec.DataSets) == 0 {
		return
	}
	namespaces := r.p.namespaces[r.profile.Name]
	var uses []datasets.Use
	for _, n := range namespaces {
		uses = append(uses, r.p.o.DataUses[n]...)
	}
	r.st.DataSets = datasets.StatusOf(r.profile.Spec.DataSets, uses, func(claim string) *resource.Quantity {
		space := resource.Quantity{Format: resource.BinarySI}
		for _, n := range namespaces {
			space.Add(r.p.o.DataSpace[types.NamespacedName{Namespace: n, Name: claim}])
		}
		return &space
	})
}
