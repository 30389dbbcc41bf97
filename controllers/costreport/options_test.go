package costreport

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/cost"
)

// A dimension that the computation does not know would make an empty ranking.
func TestReportsAreGroupedByWhatTheSpecNames(t *testing.T) {
	object := &v1alpha1.CostReport{Spec: v1alpha1.CostReportSpec{
		GroupBy: []v1alpha1.ReportDimension{v1alpha1.GroupByTask, v1alpha1.GroupByUser, v1alpha1.GroupByTeam},
	}}
	NewWithT(t).Expect((&Reconciler{}).reportOptions(object, 1).GroupBy).To(Equal(
		[]cost.Dimension{cost.ByTask, cost.ByUser, cost.ByTeam}))
}
