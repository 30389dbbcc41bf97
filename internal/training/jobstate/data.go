package jobstate

import (
	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/datasets"
)

// DataPlaces is where workers of an attempt that begins now have their data, and what of it the profile does not have.
func (o *Observed) DataPlaces() ([]v1beta1.DataPlace, []datasets.Missing) {
	var had []v1beta1.DataPlace
	if a := o.Job.Status.Attempt; a != nil {
		had = a.DataSets
	}
	return datasets.Places(o.Job.Spec.DataSets, had, o.Profile)
}
