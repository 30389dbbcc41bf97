package progress

import (
	"reflect"
	"testing"
	"time"
)

func TestWhatWasSeenIsTakenOnce(t *testing.T) {
	m := &Meter{}
	m.Account.NoteGPUs(8, after(0))
	told(t, m, 10, with(step(0), func(r *Report) { r.Phase = PhaseStart }))
	told(t, m, 20, step(10))
	told(t, m, 30, with(step(20), func(r *Report) { r.Checkpoint = 15 }))
	told(t, m, 40, step(30))
	told(t, m, 50, with(step(15), func(r *Report) { r.Phase = PhaseStart }))
	want := Seen{From: after(0), To: after(60), GPUs: 8, Stretches: []Stretch{
		{Began: after(10), At: after(10), Resumed: true, Saved: -1},
		{Began: after(20), At: after(20), First: 10, Last: 10, Resumed: true, Saved: -1}, // The first step has no pace.
		{Began: after(20), At: after(40), First: 10, Last: 30, GPUSeconds: 160, Saved: 15},
		{Began: after(50), At: after(50), First: 15, Last: 15, Resumed: true, Saved: -1},
	}}
	if seen := m.Account.TakeSeen(after(60)); !reflect.DeepEqual(seen, want) {
		t.Errorf("%+v", seen)
	}
	told(t, m, 70, step(16))
	told(t, m, 80, step(17))
	seen := m.Account.TakeSeen(after(90))
	if seen.From != after(60) || len(seen.Stretches) != 2 || seen.Stretches[1].First != 16 || seen.Stretches[1].Last != 17 {
		t.Errorf("%+v", seen)
	}
	if seen := m.Account.TakeSeen(after(90)); !seen.IsEmpty() {
		t.Errorf("%+v is taken again", seen)
	}
}

// A clock of a node that is wrong dates nothing in the future or long ago, and what waits is bounded.
func TestWhatWasSeenIsBounded(t *testing.T) {
	for _, jump := range []time.Duration{1000 * 24 * time.Hour, -1000 * 24 * time.Hour} {
		m := &Meter{}
		m.Account.NoteGPUs(8, after(0))
		for i := range 1000 {
			now := after(float64(10 * i))
			r := with(step(int64(i)), func(r *Report) { r.Phase = PhaseStart })
			if err := m.NoteReport(r, now.Add(jump), now); err != nil {
				t.Fatal(err)
			}
		}
		seen := m.Account.TakeSeen(after(30 * 24 * 3600))
		if len(seen.Stretches) != mostStretches || seen.To.Sub(seen.From) > longestSeen {
			t.Errorf("%d stretches, from %s to %s", len(seen.Stretches), seen.From, seen.To)
		}
		for _, s := range seen.Stretches {
			if s.At.After(after(10_000)) || s.At.Before(after(0).Add(-oldest)) {
				t.Errorf("a jump of %s dates a line %s", jump, s.At)
			}
		}
	}
}
