package progress

import (
	"strings"
	"testing"
	"time"
)

var t0 = time.Unix(1_700_000_000, 0)

func after(seconds float64) time.Time { return t0.Add(time.Duration(seconds * float64(time.Second))) }

// told tells a meter of a report at a time by all clocks.
func told(t *testing.T, m *Meter, seconds float64, r Report) {
	t.Helper()
	if err := m.NoteReport(r, after(seconds), after(seconds)); err != nil {
		t.Fatal(err)
	}
}

func step(n int64) Report { return Report{Step: n, Total: 1000, Checkpoint: -1, Phase: PhaseTrain} }

func with(r Report, change func(*Report)) Report {
	change(&r)
	return r
}

func trained(t *testing.T) *Meter {
	t.Helper()
	m := &Meter{}
	told(t, m, 0, with(step(0), func(r *Report) { r.Phase = PhaseStart }))
	for i := range 10 {
		told(t, m, float64(100+10*i), step(int64(20*(i+1))))
	}
	return m
}

func TestPaceAndTimeLeftFollowFromSteps(t *testing.T) {
	f, known := trained(t).ReadFigures(0, after(191))
	if !known || f.Step != 200 || f.StepTime != 500*time.Millisecond || f.TimeLeft() != 400*time.Second || f.Stall != nil {
		t.Errorf("%+v, %v left", f, f.TimeLeft())
	}
	if _, known := (&Meter{}).ReadFigures(0, t0); known {
		t.Error("figures of a training that said nothing")
	}
}

func TestStepsThatGoBackAreIgnored(t *testing.T) {
	m := trained(t)
	err := m.NoteReport(step(199), after(200), after(200))
	if err == nil || !strings.Contains(err.Error(), "goes back") {
		t.Errorf("want an error that says so, got %v", err)
	}
	if f, _ := m.ReadFigures(0, after(201)); f.Step != 200 {
		t.Errorf("step %d was believed", f.Step)
	}
	told(t, m, 210, with(step(150), func(r *Report) { r.Phase = PhaseStart }))
	if f, _ := m.ReadFigures(0, after(211)); f.Step != 150 {
		t.Errorf("a training that starts anew is at %d, want 150", f.Step)
	}
}

func TestAClockThatJumpsMakesNoHang(t *testing.T) {
	for _, jump := range []float64{-86400, -3600, 3600, 864000} {
		m := trained(t)
		for i := range 5 {
			at := after(200 + 10*float64(i) + jump)
			if err := m.NoteReport(step(int64(220+20*i)), at, after(200+10*float64(i))); err != nil {
				t.Fatal(err)
			}
		}
		f, _ := m.ReadFigures(0, after(245))
		if f.Stall != nil || f.StepTime < 400*time.Millisecond || f.StepTime > time.Second {
			t.Errorf("a jump of %v s: %+v", jump, f)
		}
	}
}

func TestWhoHearsNothingKnowsOfNoHang(t *testing.T) {
	m := trained(t)
	m.NoteDeafness()
	if f, _ := m.ReadFigures(0, after(10_000)); f.Stall != nil {
		t.Errorf("a hang was told while nobody listened: %+v", f.Stall)
	}
	m.NoteListening(after(10_000))
	if f, _ := m.ReadFigures(0, after(10_030)); f.Stall != nil {
		t.Errorf("a hang was told as soon as somebody listened: %+v", f.Stall)
	}
	if f, _ := m.ReadFigures(0, after(10_060)); f.Stall == nil {
		t.Error("no hang was told although nothing came")
	}
}

func TestABurstOfOldLinesTellsThePace(t *testing.T) {
	m := &Meter{}
	for i := range 6 {
		if err := m.NoteReport(step(int64(20*(i+1))), after(float64(10*i)), after(1000)); err != nil {
			t.Fatal(err)
		}
	}
	if f, _ := m.ReadFigures(0, after(1001)); f.StepTime != 500*time.Millisecond || f.Stall != nil {
		t.Errorf("%+v", f)
	}
}

func TestTimeBecomesKeptStepsWithTheirCheckpoint(t *testing.T) {
	m := &Meter{}
	m.Account.NoteGPUs(8, after(0))
	told(t, m, 0, with(step(0), func(r *Report) { r.Phase = PhaseStart }))
	told(t, m, 100, step(1)) // the first step, and what came before it
	for i := range 10 {
		told(t, m, float64(110+10*i), step(int64(2+i)))
	}
	if got := m.Account.ReadTotals(after(200)); got.Held != 1600 || got.Kept != 0 {
		t.Errorf("before a checkpoint: %+v", got)
	}
	told(t, m, 210, with(step(12), func(r *Report) { r.Checkpoint = 12 }))
	kept := m.Account.ReadTotals(after(210)).Kept
	if kept < 800 || kept > 900 {
		t.Errorf("kept %v GPU-seconds of 11 steps of 80", kept)
	}
	told(t, m, 220, step(13))
	told(t, m, 230, step(14))
	told(t, m, 300, with(step(12), func(r *Report) { r.Phase = PhaseStart }))
	got := m.Account.ReadTotals(after(300))
	if got.Kept != kept || got.Lost < 150 || got.Lost > 170 || got.Held != 2400 {
		t.Errorf("after two steps were lost: %+v", got)
	}
	if got.Kept+got.Lost > got.Held {
		t.Errorf("more than was held: %+v", got)
	}
}

func BenchmarkLine(b *testing.B) {
	line, m, at := []byte("tideline: step=120 total=5000 loss=2.31"), &Meter{}, t0
	b.ReportAllocs()
	for b.Loop() {
		r, _, err := ParseLine(line)
		if err != nil {
			b.Fatal(err)
		}
		at = at.Add(time.Second)
		if err := m.NoteReport(r, at, at); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAnAbsurdLineMovesNoFigureOfOthers(t *testing.T) {
	m, at := &Meter{}, time.Unix(1_700_000_000, 0)
	m.Account.NoteGPUs(8, at)
	say := func(step int64, phase Phase) {
		at = at.Add(time.Second)
		if err := m.NoteReport(Report{Step: step, Checkpoint: step, Phase: phase}, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for step := range int64(10) {
		say(step, PhaseTrain)
	}
	say(10, PhaseEvaluate)
	say(12_000_000_000, PhaseTrain) // times a second, this is beyond what a time.Duration holds
	if got := m.Account.ReadTotals(at); got.Kept < 0 || got.Kept > got.Held {
		t.Errorf("%.0f of %.0f GPU-seconds are kept", got.Kept, got.Held)
	}
}
