package arbiter

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/quota/admission"
)

func TestAllWhoWaitWriteMereFiguresOnceASecondTogether(t *testing.T) {
	for _, waiting := range []int{1, 60, 150} {
		t.Run(strconv.Itoa(waiting), func(t *testing.T) {
			g := NewWithT(t)
			b := newBoard(soonPart)
			// Room that changes each second is a mere figure for a job that is far behind.
			verdictsAt := func(second int) verdicts {
				all := verdicts{}
				for i := range waiting {
					all[types.NamespacedName{Name: strconv.Itoa(i)}] = capacity.Verdict{
						Place: int32(farPlace + i), Waiting: int32(waiting), Answer: capacity.Answer{Largest: int32(second)},
					}
				}
				return all
			}
			g.Expect(b.replace(verdictsAt(0), now)).To(HaveLen(waiting), "each hears its first verdict")
			woken, seconds := 0, 600
			for second := 1; second <= seconds; second++ {
				woken += len(b.replace(verdictsAt(second), now.Add(time.Duration(second)*time.Second)))
			}
			g.Expect(woken).To(And(BeNumerically(">", 0), BeNumerically("<=", seconds)))
			g.Expect(woken).To(BeNumerically("<=", 10*waiting), "each once a minute at most")
		})
	}
}

func TestFiguresAreToldAlthoughTheClockWasSetBack(t *testing.T) {
	g := NewWithT(t)
	b := newBoard(soonPart)
	figures := func(largest int32) verdicts {
		return verdicts{key("ctr"): {Place: farPlace, Waiting: 1, Answer: capacity.Answer{Largest: largest}}}
	}
	b.replace(figures(1), now)
	g.Expect(b.replace(figures(2), now.Add(time.Second))).To(BeEmpty())
	g.Expect(b.replace(figures(2), now.Add(-time.Hour))).To(HaveLen(1))
	g.Expect(b.replace(figures(3), now.Add(-time.Hour))).To(BeEmpty(), "and not at each look")
}

// Who holds how much changes with every job of a user, and says nothing of how far this one may grow.
func TestWhatCapsAJobWakesItAsFiguresDo(t *testing.T) {
	g := NewWithT(t)
	b := newBoard(soonTurn)
	board := func(surplus int32, used int64) map[types.NamespacedName]admission.Turn {
		return map[types.NamespacedName]admission.Turn{key("ctr"): {Surplus: surplus, Capped: &admission.Blocked{Used: used}}}
	}
	b.replace(board(1, 1), now)
	g.Expect(b.replace(board(1, 2), now.Add(time.Second))).To(BeEmpty())
	g.Expect(b.replace(board(1, 2), now.Add(figuresInterval))).To(HaveLen(1))
	g.Expect(b.replace(board(2, 2), now.Add(figuresInterval+time.Second))).To(HaveLen(1))
}
