package progress

import (
	"testing"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
)

func TestFiguresAreShownInFewWords(t *testing.T) {
	for _, one := range []struct {
		f    Figures
		want [3]string
	}{
		{Figures{Step: 420, Total: 1000, Checkpoint: -1, StepTime: 2 * time.Second}, [3]string{"42%", "0.5", "20m"}},
		{Figures{Step: 999, Total: 1000, Checkpoint: -1, StepTime: time.Second}, [3]string{"99%", "1", "1m"}},
		{Figures{Step: 1000, Total: 1000, Checkpoint: -1, StepTime: time.Second}, [3]string{"100%", "1", ""}},
		{Figures{Step: 12345, Checkpoint: 12000, StepTime: 81 * time.Millisecond}, [3]string{"step 12300", "12", ""}},
		{Figures{Step: 7, Total: 1_000_000, Checkpoint: -1}, [3]string{"0%", "", ""}},
		{Figures{Step: 0, Total: 1_000_000, Checkpoint: -1, StepTime: time.Second}, [3]string{"0%", "1", "11d18h"}},
		{Figures{Step: 0, Total: 12_000, Checkpoint: -1, StepTime: time.Second}, [3]string{"0%", "1", "3h30m"}},
		{Figures{Step: 0, Total: mostSteps, Checkpoint: -1, StepTime: time.Hour}, [3]string{"0%", "0.00028", "3650d"}},
	} {
		got := ShowFigures(nil, one.f)
		if words := [3]string{got.Progress, got.StepsPerSecond, got.TimeLeft}; words != one.want {
			t.Errorf("%+v: %q, want %q", one.f, words, one.want)
		}
	}
}

// TestALongTrainingIsWrittenRarely: a training of a day that reports every ten seconds changes its words far less often than once
// a minute.
func TestALongTrainingIsWrittenRarely(t *testing.T) {
	var shown *v1beta1.TrainingProgress
	m, writes := &Meter{}, 0
	for i := range 8640 {
		at := t0.Add(time.Duration(i) * 10 * time.Second)
		if err := m.NoteReport(Report{Step: int64(20 * i), Total: 20 * 8640, Checkpoint: -1, Phase: PhaseTrain}, at, at); err != nil {
			t.Fatal(err)
		}
		f, _ := m.ReadFigures(0, at)
		if next := ShowFigures(shown, f); next != shown {
			shown, writes = next, writes+1
		}
	}
	if writes < 100 || writes > 200 {
		t.Errorf("%d writes in a day", writes)
	}
}
