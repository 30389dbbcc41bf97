package ownership

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func naming(members ...v1beta1.ProfileMember) *v1beta1.ResourceQuotaProfile {
	return &v1beta1.ResourceQuotaProfile{Spec: v1beta1.ResourceQuotaProfileSpec{Members: members}}
}

func TestEntriesOfAnOwner(t *testing.T) {
	alice, ivy := v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "alice"},
		v1beta1.ProfileMember{Kind: v1beta1.MemberUser, Name: "ivy"}
	interns, ml := v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "interns"},
		v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "ml"}
	p := naming(alice, ml, ivy, interns)
	for name, c := range map[string]struct {
		owner   Owner
		entries []v1beta1.ProfileMember
		groups  []string
	}{
		"by name":  {Owner{User: "ivy"}, []v1beta1.ProfileMember{ivy}, nil},
		"by group": {Owner{User: "bob", Groups: []string{"ml"}}, []v1beta1.ProfileMember{ml}, []string{"ml"}},
		"by groups": {
			Owner{User: "bob", Groups: []string{"ml", "interns"}}, []v1beta1.ProfileMember{ml, interns}, []string{"interns", "ml"},
		},
		"by both":           {Owner{User: "ivy", Groups: []string{"ml"}}, []v1beta1.ProfileMember{ml, ivy}, []string{"ml"}},
		"a group's name":    {Owner{User: "ml", Groups: []string{"alice"}}, nil, nil},
		"another":           {Owner{User: "bob", Groups: []string{"leads"}}, nil, nil},
		"nobody":            {Owner{}, nil, nil},
		"of an empty group": {Owner{Groups: []string{""}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(slices.Collect(c.owner.MemberEntries(p))).To(Equal(c.entries))
			NewWithT(t).Expect(c.owner.GroupsIn(p)).To(Equal(c.groups))
		})
	}
	for m := range (Owner{User: "ivy", Groups: []string{"ml"}}).MemberEntries(p) {
		NewWithT(t).Expect(m).To(Equal(ml), "whoever has seen enough sees no more")
		break
	}
}

// What nobody checked does not count, neither when the job has just come nor ever after.
func TestGroupsThatNobodyChecked(t *testing.T) {
	for name, c := range map[string]struct {
		seen       bool
		conditions []metav1.Condition
		off        bool
		changed    bool
		counts     bool
	}{
		"a new job":                         {counts: true},
		"a new job without webhooks":        {off: true},
		"a job that was checked":            {seen: true, counts: true},
		"webhooks that were switched off":   {seen: true, off: true, counts: true},
		"and a change since then":           {seen: true, off: true, changed: true},
		"a job that was not checked":        {seen: true, conditions: unchecked()},
		"and webhooks are off still":        {seen: true, conditions: unchecked(), off: true},
		"a job that has other conditions":   {seen: true, conditions: []metav1.Condition{{Type: "Ready"}}, counts: true},
		"a job that was not, seen too late": {conditions: unchecked()},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want := Owner{User: "ivy"}
			if c.counts {
				want.Groups = []string{"interns"}
			}
			observed, generation := int64(0), int64(1)
			if c.seen {
				observed = 1
			}
			if c.changed {
				generation = 2
			}
			g.Expect(OfTraining(&v1beta1.ElasticTrainingJob{
				ObjectMeta: metav1.ObjectMeta{Generation: generation},
				Spec: v1beta1.ElasticTrainingJobSpec{Owner: "ivy", Submitter: &v1beta1.Submitter{Username: "ivy",
					Groups: []string{"interns"}}},
				Status: v1beta1.ElasticTrainingJobStatus{ObservedGeneration: observed, Conditions: c.conditions},
			}, c.off)).To(Equal(want))
			g.Expect(OfMerge(&v1beta1.MergeJob{
				ObjectMeta: metav1.ObjectMeta{Generation: generation},
				Spec:       v1beta1.MergeJobSpec{Owner: "ivy", Submitter: &v1beta1.Submitter{Username: "ivy", Groups: []string{"interns"}}},
				Status:     v1beta1.MergeJobStatus{ObservedGeneration: observed, Conditions: c.conditions},
			}, c.off)).To(Equal(want))
		})
	}
}

func unchecked() []metav1.Condition {
	return []metav1.Condition{{Type: v1beta1.ConditionOwnerChecked, Status: metav1.ConditionFalse}}
}

func TestNamed(t *testing.T) {
	g := NewWithT(t)
	profiles := []*v1beta1.ResourceQuotaProfile{
		naming(v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "ml"}, v1beta1.ProfileMember{Kind: v1beta1.MemberUser,
			Name: "alice"}), naming(),
		naming(v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "interns"}, v1beta1.ProfileMember{Kind: v1beta1.MemberGroup,
			Name: "ml"}, v1beta1.ProfileMember{Kind: v1beta1.MemberGroup, Name: "leads"}),
	}
	g.Expect(NamedGroups([]string{"ml", "system:authenticated", "interns", "alice", ""}, profiles)).To(Equal([]string{"interns",
		"ml"}))
	g.Expect(NamedGroups([]string{"system:authenticated"}, profiles)).To(BeEmpty())
	g.Expect(NamedGroups(nil, profiles)).To(BeEmpty())
	g.Expect(NamedGroups([]string{"ml"}, nil)).To(BeEmpty())
}
