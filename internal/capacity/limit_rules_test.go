package capacity

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// ruled is a gang of a namespace with a host port, which is its set of rules.
func ruled(namespace string, port int32, age time.Duration) *Gang {
	g := gangOf(1, 1)
	g.Job = types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("port-", port, "-", age)}
	g.Created, g.Shape.Kin = born.Add(-age), &Kin{Namespace: namespace, Ports: []HostPort{{Port: port}}}
	return g
}

func judgedAmong(gangs []*Gang) (names []string) {
	for _, g := range gangs {
		if g.Shape.Unmodelled == "" {
			names = append(names, g.Job.String())
		}
	}
	return names
}

func TestOneNamespaceHasFewSetsOfRulesJudged(t *testing.T) {
	g := NewWithT(t)
	var gangs []*Gang
	for i := range int32(40) {
		gangs = append(gangs, ruled("many", 1000+i, time.Duration(i)*time.Minute))
	}
	alike, other := ruled("many", 1039, 0), ruled("few", 1, 0)
	plain := gangOf(1, 1)
	gangs = append(gangs, alike, other, plain)
	rand.Shuffle(len(gangs), func(i, j int) { gangs[i], gangs[j] = gangs[j], gangs[i] })
	LimitRules(gangs)
	g.Expect(judgedAmong(gangs)).To(HaveLen(mostRulesOfNamespace + 3))
	g.Expect(alike.Shape.Unmodelled).To(BeEmpty(), "the oldest has the same rules")
	g.Expect(other.Shape.Unmodelled).To(BeEmpty(), "another namespace")
	g.Expect(plain.Shape.Unmodelled).To(BeEmpty(), "it has none")
	for _, of := range gangs {
		if of.Job.Namespace == "many" && of != alike {
			want := ""
			if of.Created.After(born.Add(-(40 - mostRulesOfNamespace) * time.Minute)) {
				want = CrowdedRules
			}
			g.Expect(of.Shape.Unmodelled).To(Equal(want), "the oldest are judged: %s", of.Job)
		}
	}
}

func TestAllNamespacesTogetherHaveABoundToo(t *testing.T) {
	var gangs []*Gang
	for i := range int32(20) {
		for j := range int32(10) {
			gangs = append(gangs, ruled(fmt.Sprint("n", i), 1000+j, time.Duration(i)*time.Minute))
		}
	}
	LimitRules(gangs)
	NewWithT(t).Expect(judgedAmong(gangs)).To(HaveLen(mostRules))
}
