package v1beta1_test

import (
	"encoding/json"
	"testing"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// One stored job that a client in Go cannot read would hide all others from it.
func TestSuccessPoliciesInOneWordAreRead(t *testing.T) {
	for content, want := range map[string]v1beta1.SuccessOperator{
		`"Master"`: "", `"AllWorkers"`: "AllWorkers", `{"operator":"Any","targets":[{"indexes":"0-"}]}`: v1beta1.SuccessOfAny,
		`null`: "",
	} {
		jobs := v1beta1.ElasticTrainingJobList{}
		err := json.Unmarshal([]byte(`{"items":[{"spec":{"successPolicy":`+content+`}}]}`), &jobs)
		if err != nil || len(jobs.Items) != 1 || jobs.Items[0].Spec.SuccessPolicy.Operator != want {
			t.Errorf("%s is read as %+v (%v)", content, jobs.Items, err)
		}
	}
	if err := json.Unmarshal([]byte(`7`), &v1beta1.SuccessPolicy{}); err == nil {
		t.Error("a number is read as a success policy")
	}
}
