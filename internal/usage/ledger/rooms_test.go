package ledger

import (
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestRooms(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		ctx := t.Context()
		room := func(when string, free float64) FreeRoom {
			return FreeRoom{At: at(when), Free: free, Unusable: 0.1, Gangs: 3}
		}
		first, second, third := room("14 10:00:00", 7), room("14 10:10:00", 0.5), room("15 00:00:00", 0)
		g.Expect(l.RecordEntries(ctx, Entries{Rooms: []FreeRoom{third, first}})).To(Succeed())
		g.Expect(l.RecordEntries(ctx, Entries{Rooms: []FreeRoom{second, room("14 10:00:00", 9)}})).To(Succeed())
		g.Expect(l.QueryRooms(ctx, first.At, third.At)).To(Equal([]FreeRoom{first, second}), "of one time the first stays")
		g.Expect(l.QueryRooms(ctx, first.At.Add(time.Second), third.At.Add(time.Second))).To(Equal([]FreeRoom{second, third}))
		_, err := l.PruneBefore(ctx, at("15 00:00:00"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(l.QueryRooms(ctx, first.At, third.At.Add(time.Second))).To(Equal([]FreeRoom{third}))
	})
}

func TestRoomsThatCannotBe(t *testing.T) {
	g := NewWithT(t)
	for _, r := range []FreeRoom{
		{}, {At: at("14 10:00:00"), Free: -1}, {At: at("14 10:00:00"), Unusable: 1.1}, {At: at("14 10:00:00"), Free: math.NaN()},
		{At: at("14 10:00:00"), Gangs: -1}, {At: at("14 10:00:00"), Unusable: math.NaN()},
	} {
		g.Expect(Entries{Rooms: []FreeRoom{r}}.check()).To(MatchError(ErrInvalid), "%+v", r)
	}
	g.Expect(Entries{Rooms: []FreeRoom{{At: at("14 10:00:00")}}}.check()).To(Succeed())
}
