package datasets_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota/datasets"
)

// ads lists clicks, in a claim and then in an object store, and words.
func ads() *v1beta1.ResourceQuotaProfile {
	return &v1beta1.ResourceQuotaProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "ads"},
		Spec: v1beta1.ResourceQuotaProfileSpec{DataSets: []v1beta1.ProfileDataSet{
			{Name: "clicks", Versions: []v1beta1.DataVersion{
				{Version: "1", Claim: "clicks-1", Folder: "raw"}, {Version: "2", Prefix: "s3://ads/clicks/2"},
			}},
			{Name: "words", Versions: []v1beta1.DataVersion{{Version: "1", Claim: "words"}}},
		}},
	}
}

func asked(sets ...string) []v1beta1.JobDataSet {
	var all []v1beta1.JobDataSet
	for i := 0; i < len(sets); i += 2 {
		all = append(all, v1beta1.JobDataSet{Name: sets[i], Version: sets[i+1]})
	}
	return all
}

func TestPlacesAreThoseOfTheProfile(t *testing.T) {
	g := NewWithT(t)
	places, missing := datasets.Places(asked("words", "1", "clicks", "2", "clicks", "1"), nil, ads())
	g.Expect(missing).To(BeEmpty())
	g.Expect(places).To(Equal([]v1beta1.DataPlace{
		{Name: "words", Version: "1", Claim: "words"}, {Name: "clicks", Version: "2", Prefix: "s3://ads/clicks/2"},
		{Name: "clicks", Version: "1", Claim: "clicks-1", Folder: "raw"},
	}))
}

func TestWhatTheProfileDoesNotHaveIsNamed(t *testing.T) {
	many := ads()
	for i := range 9 {
		many.Spec.DataSets = append(many.Spec.DataSets, v1beta1.ProfileDataSet{Name: fmt.Sprintf("d%d", i)})
	}
	none := ads()
	none.Spec.DataSets = nil
	for name, c := range map[string]struct {
		profile *v1beta1.ResourceQuotaProfile
		asked   []v1beta1.JobDataSet
		want    datasets.Missing
	}{
		"no profile": {nil, asked("clicks", "1"), datasets.Missing{
			Field: "name", Why: "the namespace belongs to no ResourceQuotaProfile, and data sets are those of profiles",
		}},
		"no such version": {ads(), asked("words", "1", "clicks", "3"), datasets.Missing{
			At: 1, Field: "version", Why: "data set clicks of profile ads has no version 3; it has 1, 2",
		}},
		"no such data set": {ads(), asked("videos", "1"), datasets.Missing{
			Field: "name", Why: "profile ads has no data set videos; it has clicks, words",
		}},
		"no data sets at all": {none, asked("videos", "1"), datasets.Missing{
			Field: "name", Why: "profile ads has no data set videos; it has none",
		}},
		"many others": {many, asked("videos", "1"), datasets.Missing{
			Field: "name", Why: "profile ads has no data set videos; it has clicks, words, d0, d1, d2, d3, d4, d5, 3 more",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, missing := datasets.Places(c.asked, nil, c.profile)
			g.Expect(missing).To(Equal([]datasets.Missing{c.want}))
		})
	}
}

func TestPlacesOfTheAttemptBeforeAreKept(t *testing.T) {
	g := NewWithT(t)
	had := []v1beta1.DataPlace{{Name: "clicks", Version: "1", Claim: "former"}, {Name: "gone", Version: "1", Claim: "gone"}}
	places, missing := datasets.Places(asked("clicks", "1", "gone", "1", "gone", "2", "words", "1", "words", "2"), had, ads())
	g.Expect(places).To(Equal([]v1beta1.DataPlace{had[0], had[1], {Name: "words", Version: "1", Claim: "words"}}))
	g.Expect(missing).To(HaveExactElements(HaveField("At", 2), HaveField("At", 4)), "each that is missing is told")
	g.Expect(datasets.Agree(places, asked("clicks", "1", "gone", "1", "words", "1"))).To(BeTrue())
	g.Expect(datasets.Agree(places, asked("clicks", "1", "gone", "1", "words", "2"))).To(BeFalse())
	g.Expect(datasets.Agree(nil, nil)).To(BeTrue())
}

func TestJobsUseWhatTheyAskForAndWhatTheyBeganWith(t *testing.T) {
	g := NewWithT(t)
	job := &v1beta1.ElasticTrainingJob{}
	g.Expect(datasets.UsedBy(job)).To(BeEmpty())
	job.Spec.DataSets = asked("clicks", "2")
	job.Status.Attempt = &v1beta1.AttemptStatus{DataSets: []v1beta1.DataPlace{
		{Name: "clicks", Version: "1"}, {Name: "clicks", Version: "2"},
	}}
	g.Expect(datasets.UsedBy(job)).To(Equal([]datasets.Version{{Name: "clicks", Version: "1"}, {Name: "clicks", Version: "2"}}),
		"pods of the attempt may still read what the spec does not name any more")
	job.Status.Phase = v1beta1.PhaseSuspended
	g.Expect(datasets.UsedBy(job)).To(Equal([]datasets.Version{{Name: "clicks", Version: "2"}}),
		"a stopped job goes on with what its spec names")
	now := metav1.Now()
	job.Status.CompletionTime = &now
	g.Expect(datasets.UsedBy(job)).To(BeEmpty(), "a job that has ended uses nothing")
}

func TestVersionsAreListedWithTheirUsersAndSpace(t *testing.T) {
	g := NewWithT(t)
	one := datasets.Version{Name: "clicks", Version: "1"}
	uses := []datasets.Use{{
		Job: types.NamespacedName{Namespace: "ads", Name: "other"}, Data: []datasets.Version{{Name: "words", Version: "9"}},
	}}
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		uses = append(uses, datasets.Use{Job: types.NamespacedName{Namespace: "ads", Name: name}, Data: []datasets.Version{one}})
	}
	size := resource.MustParse("2Ti")
	st := datasets.StatusOf(ads().Spec.DataSets, uses, func(claim string) *resource.Quantity {
		if claim == "clicks-1" {
			return &size
		}
		return nil
	})
	g.Expect(st).To(Equal([]v1beta1.DataSetStatus{
		{Name: "clicks", Version: "1", Jobs: 5, UsedBy: []string{"ads/a", "ads/b", "ads/c", "ads/d"}, Space: &size},
		{Name: "clicks", Version: "2"}, {Name: "words", Version: "1"},
	}))
}
