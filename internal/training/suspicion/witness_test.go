package suspicion

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// failing has a job of an owner and a task, which has trained well for a month elsewhere, fail on a node.
func failing(e *Evidence, owner, task, node string, at time.Time) {
	id, source := types.UID(owner+task), Source{Owner: owner, Task: task}
	e.HoldNodes(id, source, []string{"elsewhere"}, at.Add(-30*24*time.Hour))
	e.HoldNodes(id, source, []string{node}, at.Add(-time.Hour))
	e.NoteFailure(id, source, node, at)
	e.HoldNodes(id, source, nil, at)
	e.SettleFailures(at.Add(2 * together))
}

func TestWhatIsHeldAgainstANodeIsRecalled(t *testing.T) {
	g := NewWithT(t)
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	before := NewEvidence()
	failing(before, "alice", "ads/a", "bad", noon)
	failing(before, "bob", "rec/b", "bad", noon)
	later := noon.Add(time.Hour)
	known := before.ListSuspects(later)
	g.Expect(known).To(ConsistOf(And(HaveField("Node", "bad"), HaveField("Level", Shunned), HaveField("Owners", 2))))

	content, err := json.Marshal(before.WitnessesOf("bad", later))
	g.Expect(err).NotTo(HaveOccurred())
	var witnesses []Witness
	g.Expect(json.Unmarshal(content, &witnesses)).To(Succeed())
	after := NewEvidence()
	after.RecallWitnesses("bad", witnesses, later)
	g.Expect(after.ListSuspects(later)).To(Equal(known), "the same is known")
	again := later.Add(halfLife)
	g.Expect(after.ListSuspects(again)).To(Equal(before.ListSuspects(again)), "and fades in the same way")
	g.Expect(before.WitnessesOf("bad", again)[0].Sum).To(BeNumerically("~", witnesses[0].Sum/2, 0.01))
	g.Expect(after.WitnessesOf("elsewhere", again)).To(BeEmpty(), "nothing is held against another")
}

func TestWhatIsRecalledLateHasFaded(t *testing.T) {
	g := NewWithT(t)
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	e := NewEvidence()
	e.HoldNodes("job", Source{Owner: "carol", Task: "web/c"}, []string{"bad"}, noon.Add(halfLife))
	e.RecallWitnesses("bad", []Witness{{Owner: "alice", Task: "ads/a", Sum: 4, Failures: 2}}, noon)
	g.Expect(e.WitnessesOf("bad", noon.Add(halfLife))).To(ConsistOf(
		Witness{Owner: "alice", Task: "ads/a", Sum: 2, Failures: 1}), "the job is there since")
}

func TestATaskThatIsRejectedEverywhereIsStillKnownForIt(t *testing.T) {
	g := NewWithT(t)
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	broken := Source{Owner: "alice", Task: "ads/broken"}
	before := NewEvidence()
	before.NoteRejection(broken, "n1", noon)
	after := NewEvidence()
	after.RecallWitnesses("n1", before.WitnessesOf("n1", noon), noon)
	const ignorant = "one that knows nothing"
	for name, e := range map[string]*Evidence{"the same operator": before, "the next": after, ignorant: NewEvidence()} {
		e.NoteRejection(broken, "n2", noon)
		g.Expect(e.WitnessesOf("n2", noon)).To(ConsistOf(HaveField("Sum", BeNumerically("~", gainOf(map[bool]float64{
			true: seldom, false: 1 / unknownHours,
		}[name == ignorant]), 1e-3))), name)
	}
}

func TestWhatIsRecalledCountsNoMoreThanOneOwnerMay(t *testing.T) {
	g := NewWithT(t)
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	e, all := NewEvidence(), []Witness{
		{Owner: "alice", Task: "nothing"}, {Owner: "alice", Task: "none", Sum: math.NaN()},
		{Owner: "alice", Task: "less", Sum: 1, Rejections: -1},
	}
	for i := range 2 * mostWitnesses {
		all = append(all, Witness{Owner: "alice", Task: string(rune('a' + i)), Sum: 4, Failures: 1})
	}
	e.RecallWitnesses("bad", all, noon)
	sum := 0.0
	for _, w := range e.WitnessesOf("bad", noon) {
		sum += w.Sum
	}
	g.Expect(sum).To(BeNumerically("~", mostByOwner, 1e-9))
	g.Expect(e.WitnessesOf("bad", noon)).NotTo(ContainElement(HaveField("Task", MatchRegexp("^(nothing|none|less)$"))))
}
