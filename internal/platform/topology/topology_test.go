package topology

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodes are two racks of two, and one apart.
func nodes() map[string]map[string]string {
	return map[string]map[string]string{
		"a0": {"rack": "a"}, "a1": {"rack": "a"}, "b0": {"rack": "b"}, "b1": {"rack": "b"}, "lone": nil,
	}
}

func byLabel(key, value string) Member {
	return Member{Labels: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

func TestDomains(t *testing.T) {
	for name, c := range map[string]struct {
		given []HyperNode
		want  []Domain
	}{
		"none": {nil, []Domain{}},
		"two tiers, by all ways to name nodes": {
			[]HyperNode{
				{"spine", 2, []Member{{HyperNode: "rack-b"}, {HyperNode: "rack-a"}, {Node: "lone"}}},
				{"rack-b", 1, []Member{byLabel("rack", "b")}},
				{"rack-a", 1, []Member{{Pattern: "^a[0-9]$"}}},
			},
			[]Domain{
				{"rack-a", 1, []string{"a0", "a1"}}, {"rack-b", 1, []string{"b0", "b1"}},
				{"spine", 2, []string{"a0", "a1", "b0", "b1", "lone"}},
			},
		},
		"members that do not exist, and that nobody can read": {
			[]HyperNode{{"x", 1, []Member{
				{HyperNode: "gone"}, {Node: "gone"}, {Pattern: "("}, {Labels: &metav1.LabelSelector{}}, {}, {Node: "a0"},
			}}},
			[]Domain{{"x", 1, []string{"a0"}}},
		},
		"a circle": {
			[]HyperNode{{"x", 1, []Member{{HyperNode: "y"}, {Node: "a0"}}}, {"y", 2, []Member{{HyperNode: "x"}, {Node: "b0"}}}},
			[]Domain{{"x", 1, []string{"a0", "b0"}}, {"y", 2, []string{"a0", "b0"}}},
		},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(ResolveDomains(c.given, nodes())).To(Equal(c.want)) })
	}
}

func TestAround(t *testing.T) {
	g := NewWithT(t)
	all := []Domain{{"a", 1, []string{"a0", "a1"}}, {"b", 1, []string{"b0"}}, {"s", 2, []string{"a0", "a1", "b0"}}}
	names := func(of ...string) (names []string) {
		for _, d := range DomainsAround(all, of) {
			names = append(names, d.Name)
		}
		return names
	}
	g.Expect(names("a0", "a1")).To(Equal([]string{"a", "s"}), "the nearest first")
	g.Expect(names("a0", "b0")).To(Equal([]string{"s"}))
	g.Expect(names("a0", "lone")).To(BeEmpty())
	g.Expect(names()).To(BeEmpty())
	g.Expect(TopTier(all)).To(Equal(3), "from here on a limit is none")
	g.Expect(TopTier(nil)).To(Equal(1))
}
