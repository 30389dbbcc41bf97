package quota

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/statuspace"
	"github.com/tideline-io/tideline/internal/quota/datasets"
)

// Users and space of other teams, whose data sets may have the same names, do not count.
func TestStatusSaysWhoUsesData(t *testing.T) {
	g := NewWithT(t)
	w := newSimulator(t)
	for _, team := range []string{"ads", "feed"} {
		p := w.profile(team, 1)
		p.Spec.DataSets = []v1beta1.ProfileDataSet{{Name: "clicks", Versions: []v1beta1.DataVersion{
			{Version: "1", Claim: "clicks"}, {Version: "2", Prefix: "s3://clicks/2"},
		}}}
	}
	w.namespace("ads-prod", "ads")
	use := func(namespace, name string) datasets.Use {
		return datasets.Use{
			Job: types.NamespacedName{Namespace: namespace, Name: name}, Data: []datasets.Version{{Name: "clicks", Version: "1"}},
		}
	}
	w.o.DataUses = map[string][]datasets.Use{
		"ads-prod": {use("ads-prod", "b")}, "ads-dev": {use("ads-dev", "a")}, "feed-dev": {use("feed-dev", "c")},
	}
	w.o.DataSpace = map[types.NamespacedName]resource.Quantity{
		{Namespace: "ads-prod", Name: "clicks"}: resource.MustParse("1Ti"),
		{Namespace: "ads-dev", Name: "clicks"}:  resource.MustParse("512Gi"),
		{Namespace: "ads-dev", Name: "other"}:   resource.MustParse("7Gi"),
		{Namespace: "feed-dev", Name: "clicks"}: resource.MustParse("3Gi"),
	}
	d := Plan(w.o, w.now)
	found := map[string][]v1beta1.DataSetStatus{}
	for _, p := range d.Profiles {
		found[p.Profile.Name] = p.Status.DataSets
	}
	g.Expect(found["ads"]).To(HaveLen(2))
	g.Expect(found["ads"][0]).To(And(HaveField("Jobs", int32(2)), HaveField("UsedBy", []string{"ads-dev/a", "ads-prod/b"})))
	g.Expect(found["ads"][0].Space.String()).To(Equal("1536Gi"))
	g.Expect(found["ads"][1]).To(Equal(v1beta1.DataSetStatus{Name: "clicks", Version: "2"}))
	g.Expect(found["feed"][0].UsedBy).To(Equal([]string{"feed-dev/c"}))
	g.Expect(found["feed"][0].Space.String()).To(Equal("3Gi"))
}

// That a version is used must be known at once, since it keeps the version from being removed. How many use it may wait.
func TestPaceOfDataInUse(t *testing.T) {
	status := func(jobs int32, space string) *v1beta1.ResourceQuotaProfileStatus {
		return &v1beta1.ResourceQuotaProfileStatus{DataSets: []v1beta1.DataSetStatus{
			{Name: "clicks", Version: "1", Jobs: jobs, Space: ptr.To(resource.MustParse(space))},
		}}
	}
	g := NewWithT(t)
	g.Expect(PaceOf(status(0, "1Gi"), status(1, "1Gi"))).To(Equal(statuspace.Now))
	g.Expect(PaceOf(status(1, "1Gi"), status(2, "1Gi"))).To(Equal(statuspace.Calm))
	g.Expect(PaceOf(status(2, "1Gi"), status(0, "1Gi"))).To(Equal(statuspace.Now))
	g.Expect(PaceOf(status(2, "1Gi"), status(2, "2Gi"))).To(Equal(statuspace.Calm))
	g.Expect(PaceOf(status(2, "1Gi"), status(2, "1024Mi"))).To(Equal(statuspace.Never))
}
