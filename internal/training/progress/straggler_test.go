package progress

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// A crew is a training of so many workers as its ranks time themselves, made from a seed. The generator was fixed before the
// first run: 2 to 64 workers, 20 to 200 steps between two reports (the helper has 100), each worker's part of a step with a
// jitter of a tenth, one part in 100 up to three times as long, and nodes that differ by up to a tenth. In every second crew one
// worker takes 1.4 to 3 times as long from the 100th report on. 600 reports, ten seconds apart.
type crew struct {
	random *rand.Rand
	speed  []float64
	steps  int
	slow   int // its worker; -1 for none
	factor float64
}

func newCrew(seed uint64) *crew {
	random := rand.New(rand.NewPCG(seed, 75))
	c := &crew{random: random, speed: make([]float64, 2+random.IntN(63)), steps: 20 + random.IntN(181), slow: -1}
	for i := range c.speed {
		c.speed[i] = 1 + 0.1*random.Float64()
	}
	if seed%2 == 0 {
		c.slow, c.factor = random.IntN(len(c.speed)), 1.4+1.6*random.Float64()
	}
	return c
}

// compare is what the ranks gather for report n.
func (c *crew) compare(n int) Slowest {
	took := make([]float64, len(c.speed))
	for i := range took {
		for range c.steps {
			part := c.speed[i] * (1 + 0.1*c.random.NormFloat64())
			if c.random.IntN(100) == 0 {
				part *= 1 + 2*c.random.Float64()
			}
			took[i] += max(part, 0.1)
		}
		if i == c.slow && n >= 100 {
			took[i] *= c.factor
		}
	}
	sorted := slices.Sorted(slices.Values(took))
	at := slices.Index(took, sorted[len(sorted)-1])
	return Slowest{Worker: int32(at), Slowness: sorted[len(sorted)-1] / sorted[(len(sorted)-1)/2]}
}

// TestStragglersAreToldAndNoOthers: over 16 seeds, half of them with a straggler, each is told within two minutes, and no other
// worker ever.
func TestStragglersAreToldAndNoOthers(t *testing.T) {
	told := 0
	for seed := range uint64(16) {
		c, m, at := newCrew(seed), Meter{}, time.Unix(1_700_000_000, 0)
		say := func(step int, phase Phase, s Slowest) {
			at = at.Add(10 * time.Second)
			r := Report{Step: int64(step), Checkpoint: -1, Phase: phase, Slowest: s}
			if err := m.NoteReport(r, at, at); err != nil {
				t.Fatal(err)
			}
		}
		say(0, PhaseStart, Slowest{})
		first := 0
		for n := range 600 {
			say(1+n*c.steps, PhaseTrain, c.compare(n))
			f, _ := m.ReadFigures(0, at)
			switch {
			case f.Straggler == nil:
			case c.slow < 0 || n < 100 || int(f.Straggler.Worker) != c.slow:
				t.Errorf("seed %d: worker %d is told after report %d, and %d is slow", seed, f.Straggler.Worker, n, c.slow)
			case first == 0:
				first = n
				told++
			}
		}
		if c.slow >= 0 && (first == 0 || first > 112) {
			t.Errorf("seed %d: told after report %d that worker %d takes %.2f times as long", seed, first, c.slow, c.factor)
		}
	}
	t.Logf("%d of 8 stragglers were told, and no other worker", told)
}

// A script that prints ranks instead of indices names a worker that is not there.
func TestAWorkerThatIsNotThereIsNoStraggler(t *testing.T) {
	for workers, told := range map[int32]bool{2: false, 8: true, 0: true} {
		m, at := Meter{Workers: workers}, time.Unix(1_700_000_000, 0)
		for step := range int64(8) {
			at = at.Add(10 * time.Second)
			r := Report{Step: step, Checkpoint: -1, Phase: PhaseTrain, Slowest: Slowest{Worker: 7, Slowness: 1.5}}
			if err := m.NoteReport(r, at, at); err != nil {
				t.Fatal(err)
			}
		}
		if f, _ := m.ReadFigures(0, at); (f.Straggler != nil) != told {
			t.Errorf("of %d workers, the straggler is %+v", workers, f.Straggler)
		}
	}
}

func TestAStragglerIsForgottenWhenWorkersChange(t *testing.T) {
	m, at := Meter{}, time.Unix(1_700_000_000, 0)
	say := func(step int64, s Slowest) {
		at = at.Add(10 * time.Second)
		if err := m.NoteReport(Report{Step: step, Checkpoint: -1, Phase: PhaseTrain, Slowest: s}, at, at); err != nil {
			t.Fatal(err)
		}
	}
	straggler := func() *Straggler {
		f, _ := m.ReadFigures(0, at)
		return f.Straggler
	}
	for step := range int64(8) {
		say(step, Slowest{Worker: 3, Slowness: 1.5})
	}
	say(8, Slowest{Worker: 1, Slowness: 1.1})
	if s := straggler(); s == nil || s.Worker != 3 || math.Abs(s.Slowness-1.5) > 1e-9 {
		t.Errorf("one report that says otherwise changes nothing: %+v", s)
	}
	m.NoteDisturbance()
	if s := straggler(); s != nil {
		t.Errorf("the worker may have been replaced: %+v", s)
	}
}

func TestWhatIsSaidOfTheSlowestIsJudged(t *testing.T) {
	r, _, err := ParseLine([]byte("tideline: step=7 slowest=3 slowness=1.6"))
	if want := (Slowest{Worker: 3, Slowness: 1.6}); err != nil || r.Slowest != want {
		t.Errorf("%+v, %v, want %+v", r.Slowest, err, want)
	}
	for line, want := range map[string]string{
		"tideline: step=7 slowest=3":                     "slowest and slowness belong together",
		"tideline: step=7 slowness=2":                    "slowest and slowness belong together",
		"tideline: step=7 slowest=-1 slowness=2":         "is no whole number",
		"tideline: step=7 slowest=9999999999 slowness=2": "is no index of a worker",
		"tideline: step=7 slowest=3 slowness=0.9":        "is no number from 1 to 1e6",
		"tideline: step=7 slowest=3 slowness=NaN":        "is no number from 1 to 1e6",
		"tideline: step=7 slowest=3 slowness=Inf":        "is no number from 1 to 1e6",
	} {
		if _, _, err := ParseLine([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

func TestTheStragglerIsShownUntilAnotherIs(t *testing.T) {
	f := Figures{Step: 7, Total: 100, Checkpoint: -1, Straggler: &Straggler{Worker: 3, Slowness: 1.58}}
	shown := ShowFigures(&v1beta1.TrainingProgress{Step: 7, Total: 100, Progress: "7%"}, f)
	if s := shown.Straggler; s == nil || s.Worker != 3 || s.Slowness != "1.6" {
		t.Fatalf("%+v", s)
	}
	shown.Straggler.Node = "n5"
	f.Straggler.Slowness = 1.9
	if again := ShowFigures(shown, f); again != shown {
		t.Errorf("it is written anew: %+v", again)
	}
	f.Straggler = &Straggler{Worker: 4, Slowness: 2}
	if next := ShowFigures(shown, f); fmt.Sprint(*next.Straggler) != "{4  2.0}" {
		t.Errorf("%+v", next.Straggler)
	}
	f.Straggler = nil
	if next := ShowFigures(shown, f); next.Straggler != nil {
		t.Errorf("%+v", next.Straggler)
	}
}
