package ledger

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// held is an entry of a training that held eight GPUs. In these tests one takes 100 steps an hour.
func held(from, to string, stretches ...Stretch) Trained {
	return Trained{
		UID: "ctr-7", Namespace: "ads", Profile: "ads", Queue: "ads", User: "alice", Tier: "exploratory", Kind: "ElasticTrainingJob",
		Task: "ctr", From: at(from), To: at(to), GPUs: 8, Stretches: stretches,
	}
}

// took is a stretch of steps, without a checkpoint, of eight GPUs all the time.
func took(first, last int64, began, ended string) Stretch {
	return Stretch{
		Began: at(began), At: at(ended), First: first, Last: last, Saved: -1,
		GPUSeconds: 8 * int64(at(ended).Sub(at(began))/time.Second),
	}
}

func saved(step int64, s Stretch) Stretch {
	s.Saved = step
	return s
}

func wentOn(step int64, when string) Stretch {
	return Stretch{Began: at(when), At: at(when), First: step, Last: step, Resumed: true, Saved: -1}
}

// dayOfTraining is a day on which a lost worker cost two hours of ten.
func dayOfTraining() []Trained {
	return []Trained{
		held("14 10:00:00", "14 14:00:00", wentOn(0, "14 10:00:00"), saved(400, took(0, 400, "14 10:00:00", "14 14:00:00"))),
		held("14 14:00:00", "14 16:00:00", took(400, 600, "14 14:00:00", "14 16:00:00")),
		held("14 16:00:00", "14 20:00:00", wentOn(400, "14 16:00:01"), saved(800, took(400, 800, "14 16:00:02", "14 20:00:00"))),
	}
}

var lostTwoHours = Goodput{
	Namespace: "ads", Profile: "ads", Queue: "ads", User: "alice", Kind: "ElasticTrainingJob", Task: "ctr",
	Held: 8 * 10 * 3600, Kept: 8*8*3600 - 8*2, Lost: 8 * 2 * 3600,
}

// goodput is what the ledger says of days in November 2026, the last one excluded.
func goodput(ctx context.Context, g *WithT, l *Ledger, from, to string) []Goodput {
	g.THelper()
	list, err := l.QueryGoodput(ctx, at(from+" 00:00:00"), at(to+" 00:00:00"))
	g.Expect(err).NotTo(HaveOccurred())
	return list
}

func TestALostWorkerCostsTwoHoursOfTen(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		for _, e := range dayOfTraining() {
			g.Expect(l.RecordEntries(t.Context(), Entries{Trained: []Trained{e}})).To(Succeed())
		}
		g.Expect(goodput(t.Context(), g, l, "14", "15")).To(Equal([]Goodput{lostTwoHours}))
		g.Expect(goodput(t.Context(), g, l, "15", "16")).To(BeEmpty())
		g.Expect(l.RecordEntries(t.Context(), Entries{Trained: dayOfTraining()})).To(Succeed())
		g.Expect(goodput(t.Context(), g, l, "01", "30")).To(Equal([]Goodput{lostTwoHours}), "what is recorded twice counts once")
	})
}

// GPU time is of the day on which it was held, also if the checkpoint that keeps it came on another.
func TestACheckpointKeepsWhatWasTrainedBeforeMidnight(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		tell := func(e Trained) { g.Expect(l.RecordEntries(t.Context(), Entries{Trained: []Trained{e}})).To(Succeed()) }
		kept := func(day, next string) (hours int64) {
			for _, of := range goodput(t.Context(), g, l, day, next) {
				g.Expect(of.Lost).To(BeZero())
				hours += of.Kept / 8 / 3600
			}
			return hours
		}
		tell(held("14 20:00:00", "15 02:00:00", wentOn(1000, "14 20:00:00"), took(1000, 1600, "14 20:00:00", "15 02:00:00")))
		g.Expect(goodput(t.Context(), g, l, "14", "15")[0].Held).To(BeEquivalentTo(8 * 4 * 3600))
		g.Expect(kept("14", "16")).To(BeZero(), "no checkpoint has them")
		tell(held("15 02:00:00", "15 03:00:00", saved(1500, took(1600, 1700, "15 02:00:00", "15 03:00:00"))))
		g.Expect(kept("14", "15")).To(BeEquivalentTo(4))
		g.Expect(kept("15", "16")).To(BeEquivalentTo(1))
		done := held("15 03:00:00", "15 03:00:00")
		done.Succeeded = true
		tell(done)
		tell(done)
		g.Expect(kept("15", "16")).To(BeEquivalentTo(3), "a training that has succeeded keeps all its steps")
	})
}

// What nothing is known of is not zero.
func TestATrainingThatSaysNothingIsUnknown(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		silent := held("14 10:00:00", "14 20:00:00")
		silent.UID, silent.Task = "silent", "silent"
		starting := held("14 10:00:00", "14 11:00:00")
		later := held("14 11:00:00", "14 12:00:00", wentOn(0, "14 11:30:00"))
		g.Expect(l.RecordEntries(t.Context(), Entries{Trained: []Trained{silent, starting}})).To(Succeed())
		g.Expect(goodput(t.Context(), g, l, "14", "15")).To(BeEmpty())
		g.Expect(l.RecordEntries(t.Context(), Entries{Trained: []Trained{later}})).To(Succeed())
		g.Expect(goodput(t.Context(), g, l, "14", "15")).To(HaveExactElements(And(
			HaveField("Task", "ctr"), HaveField("Held", BeEquivalentTo(8*2*3600)), HaveField("Kept", BeZero()))),
			"the time before its first line too")
		ended := Trained{UID: "unheard", From: at("14 10:00:00"), To: at("14 10:00:00"), Succeeded: true}
		g.Expect(l.RecordEntries(t.Context(), Entries{Trained: []Trained{ended}})).To(Succeed())
		g.Expect(goodput(t.Context(), g, l, "14", "15")).To(HaveLen(1))
	})
}

// Two operators follow a training side by side, each begins anew now and then, reads again what was said before, and both cut the
// time elsewhere. Each moment and each step counts once.
func TestLeadersThatOverlapCountNothingTwice(t *testing.T) {
	begin := at("13 12:00:00")
	moment := func(second int64) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	const end = 40 * 3600
	// Each second is a step. Every 10,000 s the training goes back by 1,000 steps; the last 3,000 steps are never saved.
	truth := []Stretch{}
	step := int64(0)
	for second := int64(0); second < end; {
		if second%10_000 == 0 && second > 0 {
			step -= 1000
			when := moment(second)
			truth = append(truth, Stretch{Began: when, At: when.Add(1), First: step, Last: step, Resumed: true, Saved: -1})
		}
		truth = append(truth, Stretch{
			Began: moment(second), At: moment(second + 1000), First: step, Last: step + 1000, GPUSeconds: 8000, Saved: -1,
		})
		second, step = second+1000, step+1000
	}
	truth[len(truth)-1].Saved = step - 3000
	since := func(from, to int64) []Stretch {
		return slices.DeleteFunc(slices.Clone(truth), func(s Stretch) bool {
			return s.At.Before(moment(from)) || s.At.After(moment(to).Add(1))
		})
	}
	entry := func(from, to int64, stretches []Stretch) Trained {
		e := held("13 12:00:00", "13 12:00:00", stretches...)
		e.From, e.To = moment(from), moment(to)
		return e
	}
	ledgers(t, func(g *WithT, l *Ledger) {
		g.Expect(l.RecordEntries(t.Context(), Entries{Trained: []Trained{entry(0, 24*3600, since(0, 24*3600)),
			entry(24*3600, end, since(24*3600, end))}})).To(Succeed())
		want := [][]Goodput{goodput(t.Context(), g, l, "13", "14"), goodput(t.Context(), g, l, "14", "15"),
			goodput(t.Context(), g, l, "15", "16")}
		g.Expect(want[1][0].Lost).To(BeNumerically(">", 0))
		g.Expect(want[2][0].Held - want[2][0].Kept - want[2][0].Lost).To(BeEquivalentTo(3000 * 8))
		for seed := range uint64(8) {
			r := rand.New(rand.NewPCG(seed, 1))
			_, err := l.PruneBefore(t.Context(), at("20 00:00:00"))
			g.Expect(err).NotTo(HaveOccurred())
			for to := int64(0); to < end; {
				to = min(end, to+1000*(1+r.Int64N(5)))
				from := max(0, to-1000*(5+r.Int64N(9)))
				e := entry(from, to, joined(since(max(0, from-2000), to)))
				g.Expect(l.RecordEntries(t.Context(), Entries{Trained: slices.Repeat([]Trained{e}, 1+r.IntN(2))})).To(Succeed())
			}
			g.Expect([][]Goodput{goodput(t.Context(), g, l, "13", "14"), goodput(t.Context(), g, l, "14", "15"),
				goodput(t.Context(), g, l, "15", "16")}).To(Equal(want), "seed %d", seed)
		}
	})
}

// joined makes one stretch of those that follow one another.
func joined(stretches []Stretch) []Stretch {
	var list []Stretch
	for _, s := range stretches {
		last := len(list) - 1
		if last >= 0 && !s.Resumed && !list[last].Resumed && list[last].Last == s.First {
			s.Began, s.First, s.GPUSeconds = list[last].Began, list[last].First, list[last].GPUSeconds+s.GPUSeconds
			list = list[:last]
		}
		list = append(list, s)
	}
	return list
}

// What a training says of its steps takes nothing from others, and what cannot be is refused.
func TestWhatATrainingClaimsIsBounded(t *testing.T) {
	ledgers(t, func(g *WithT, l *Ledger) {
		claims := held("14 10:00:00", "14 11:00:00", saved(9, took(0, 9, "13 12:00:00", "14 11:00:00")))
		claims.Stretches[0].GPUSeconds *= 100
		g.Expect(l.RecordEntries(t.Context(), Entries{Trained: []Trained{claims}})).To(Succeed())
		g.Expect(goodput(t.Context(), g, l, "13", "15")).To(HaveExactElements(And(
			HaveField("Held", BeEquivalentTo(8*3600)), HaveField("Kept", BeEquivalentTo(8*3600)), HaveField("Lost", BeZero()))))
		for what, change := range map[string]func(*Trained){
			"no UID":           func(e *Trained) { e.UID = "" },
			"goes back":        func(e *Trained) { e.To = e.From.Add(-time.Second) },
			"too long":         func(e *Trained) { e.To = e.From.Add(72 * time.Hour) },
			"negative GPUs":    func(e *Trained) { e.GPUs = -1 },
			"steps back":       func(e *Trained) { e.Stretches[0].Last = -1 },
			"a step too far":   func(e *Trained) { e.Stretches[0].Last = MaxStep + 1 },
			"too many of them": func(e *Trained) { e.Stretches = make([]Stretch, MaxStretches+1) },
			"before all time":  func(e *Trained) { e.Stretches[0].Began = time.Time{} },
		} {
			e := held("15 10:00:00", "15 11:00:00", took(0, 9, "15 10:00:00", "15 11:00:00"))
			change(&e)
			g.Expect(l.RecordEntries(t.Context(), Entries{Trained: []Trained{e}})).To(MatchError(ErrInvalid), what)
		}
		g.Expect(goodput(t.Context(), g, l, "15", "16")).To(BeEmpty())
	})
}
