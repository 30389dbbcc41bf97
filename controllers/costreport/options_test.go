package costreport

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost"
)

// A dimension that the computation does not know would make an empty ranking.
func TestReportsAreGroupedByWhatTheSpecNames(t *testing.T) {
	object := &v1beta1.CostReport{Spec: v1beta1.CostReportSpec{
		GroupBy: []v1beta1.ReportDimension{v1beta1.GroupByTask, v1beta1.GroupByUser, v1beta1.GroupByTeam},
	}}
	NewWithT(t).Expect((&Reconciler{}).reportOptions(object, 1).GroupBy).To(Equal(
		[]cost.Dimension{cost.ByTask, cost.ByUser, cost.ByTeam}))
}
