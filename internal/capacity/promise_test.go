package capacity

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestGangWhoseRoomOthersTookClaimsAgainAfterAPause(t *testing.T) {
	g := NewWithT(t)
	nodes, at := []Node{nodeOf("a", 4)}, born
	d := docket(named("first", 1, time.Hour))
	_, d.Promises, _ = cluster(nodes, used("a", 2), surplus("a", "x", 3, 1), surplus("a", "x", 2, 1)).Judge(d, at)
	taken := cluster(nodes, used("a", 3), surplus("a", "x", 2, 1))
	_, d.Promises, _ = taken.Judge(d, at)
	at = at.Add(inTime)
	verdicts, promises, _ := taken.Judge(d, at)
	g.Expect(promises.Ended).To(HaveLen(1))
	g.Expect(verdicts[job("first")].Overdue).To(BeFalse(), "it never had the room")
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].InVain).To(ConsistOf(job("first")))
	d.Promises = promises
	verdicts, standing, again := taken.Judge(d, at.Add(time.Second))
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(BeEmpty())
	g.Expect(again).To(Equal(inTime - time.Second))
	d.Promises = standing
	verdicts, _, _ = taken.Judge(d, at.Add(inTime))
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].GiveUp).To(HaveLen(1), "nothing about it need change")
}

func TestEveryClaimThatEndedIsTold(t *testing.T) {
	g := NewWithT(t)
	nodes, full := []Node{nodeOf("a", 2)}, []Pod{surplus("a", "x", 3, 1), surplus("a", "x", 2, 1)}
	d := docket(named("first", 1, time.Hour), named("second", 1, time.Minute))
	at := born
	var verdicts map[types.NamespacedName]Verdict
	for range 2 { // One after the other has others leave for it, and is not placed.
		_, d.Promises, _ = cluster(nodes, full...).Judge(d, at)
		_, d.Promises, _ = cluster(nodes, full[1:]...).Judge(d, at)
		at = at.Add(inTime)
		verdicts, d.Promises, _ = cluster(nodes, full[1:]...).Judge(d, at)
	}
	g.Expect(verdicts[types.NamespacedName{Name: "x"}].InVain).To(ConsistOf(job("first"), job("second")))
}
