package quota

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// largeProfile is one whose selector has as many values as the schema takes, and matches team.
func largeProfile(name, team string) *v1beta1.ResourceQuotaProfile {
	p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	for e := range 16 {
		of := metav1.LabelSelectorRequirement{Key: fmt.Sprint("k", e), Operator: metav1.LabelSelectorOpIn, Values: []string{team}}
		for n := range 255 {
			of.Values = append(of.Values, fmt.Sprintf("v%d-%d-%s", e, n, strings.Repeat("x", 45)))
		}
		p.Spec.NamespaceSelector.MatchExpressions = append(p.Spec.NamespaceSelector.MatchExpressions, of)
	}
	return p
}

func labelsOf(team string) map[string]string {
	all := map[string]string{}
	for e := range 16 {
		all[fmt.Sprint("k", e)] = team
	}
	return all
}

// Each reconcile of a job asks for the profile of its namespace.
func TestSelectorsAreCompiledOnce(t *testing.T) {
	g := NewWithT(t)
	var all []*v1beta1.ResourceQuotaProfile
	for i := range 26 {
		all = append(all, largeProfile(fmt.Sprint("profile-", i), fmt.Sprint("team-", i)))
	}
	g.Expect(NewIndex(all).ProfileOf(labelsOf("team-7"))).To(BeIdenticalTo(all[7]))
	again := testing.AllocsPerRun(10, func() { NewIndex(all) })
	g.Expect(again).To(BeNumerically("<", 100), "allocations: a value that is checked takes some")
}

func TestASelectorThatChangesIsCompiledAnew(t *testing.T) {
	g := NewWithT(t)
	before := largeProfile("changing", "old")
	find := func(p *v1beta1.ResourceQuotaProfile, team string) *v1beta1.ResourceQuotaProfile {
		return NewIndex([]*v1beta1.ResourceQuotaProfile{p}).ProfileOf(labelsOf(team))
	}
	g.Expect(find(before, "old")).To(BeIdenticalTo(before))
	// A dry run has the same UID, generation and version.
	tried := largeProfile("changing", "new")
	g.Expect(find(tried, "old")).To(BeNil())
	g.Expect(find(tried, "new")).To(BeIdenticalTo(tried))
	g.Expect(find(before, "old")).To(BeIdenticalTo(before))
	fewer := before.DeepCopy()
	fewer.Spec.NamespaceSelector.MatchExpressions = before.Spec.NamespaceSelector.MatchExpressions[:1]
	g.Expect(find(fewer, "old")).To(BeIdenticalTo(fewer), "fewer demands, from the same place")
	byLabels := before.DeepCopy()
	byLabels.Spec.NamespaceSelector.MatchExpressions = nil
	byLabels.Spec.NamespaceSelector.MatchLabels = map[string]string{"k0": "other"}
	g.Expect(find(byLabels, "old")).To(BeNil())
	g.Expect(find(byLabels, "other")).To(BeIdenticalTo(byLabels))
	invalid := before.DeepCopy()
	invalid.Spec.NamespaceSelector.MatchExpressions[0].Operator = "Near"
	for range 2 {
		g.Expect(find(invalid, "old")).To(BeNil())
	}
}

func TestSelectorsOfProfilesThatAreGoneAreForgotten(t *testing.T) {
	g := NewWithT(t)
	var m memo
	stays := largeProfile("stays", "team")
	for i := range 100 {
		m.forgetOthers([]*v1beta1.ResourceQuotaProfile{stays})
		g.Expect(m.compile(stays).Empty()).To(BeFalse())
		g.Expect(m.compile(largeProfile(strconv.Itoa(i), "tried")).Empty()).To(BeFalse(), "of a dry run")
		g.Expect(len(m.last)).To(BeNumerically("<=", 1+spareSelectors+2))
		g.Expect(m.last).To(HaveKey(types.UID("stays")))
	}
}
