package progress

import (
	"strings"
	"testing"
)

func TestLinesOfTheProtocolAreRead(t *testing.T) {
	for line, want := range map[string]Report{
		"tideline: step=120 total=5000 loss=2.31 checkpoint=100": {
			Step: 120, Total: 5000, Loss: 2.31, Checkpoint: 100, Phase: PhaseTrain,
		},
		"tideline: step=0":                        {Checkpoint: -1, Phase: PhaseTrain},
		"tideline: step=7 rank=0\r":               {Step: 7, Checkpoint: -1, Phase: PhaseTrain},
		"tideline: phase=start step=100":          {Step: 100, Checkpoint: -1, Phase: PhaseStart},
		"tideline: step=5 loss=-1e-3 phase=train": {Step: 5, Loss: -1e-3, Checkpoint: -1, Phase: PhaseTrain},
	} {
		if got, ours, err := ParseLine([]byte(line)); got != want || !ours || err != nil {
			t.Errorf("%q: %+v, %v, %v, want %+v", line, got, ours, err, want)
		}
	}
}

func TestLinesOfOthersAreNotJudged(t *testing.T) {
	for _, line := range []string{"", "step=3", " tideline: step=3", "tideline:", "Tideline: step=3",
		"[default0]:tideline: step=3",
	} {
		if _, ours, err := ParseLine([]byte(line)); ours || err != nil {
			t.Errorf("%q: ours %v, %v", line, ours, err)
		}
	}
}

func TestBadLinesAreRefusedWithAReason(t *testing.T) {
	for line, want := range map[string]string{
		"tideline: ":                                          "is not KEY=VALUE",
		"tideline: total=9":                                   "has no step",
		"tideline: step=":                                     "is no whole number",
		"tideline: step=-1":                                   "is no whole number",
		"tideline: step=+1":                                   "is no whole number",
		"tideline: step=1.5":                                  "is no whole number",
		"tideline: step=NaN":                                  "is no whole number",
		"tideline: step=9999999999999999":                     "is no whole number",
		"tideline: step=1  total=2":                           "is not KEY=VALUE",
		"tideline: step=1 step=2":                             "stands twice",
		"tideline: step=3 total=2":                            "is beyond total",
		"tideline: step=3 checkpoint=4":                       "is beyond step",
		"tideline: step=3 loss=NaN":                           "is no finite number",
		"tideline: step=3 loss=-Inf":                          "is no finite number",
		"tideline: step=3 rank=1":                             "only rank 0 reports",
		"tideline: step=3 phase=sleep":                        "is none of start",
		"tideline: step=3 mood=good":                          "is no key",
		"tideline: step=3 x\x1b[31m=1":                        `is no key`,
		"tideline: step=3 loss=" + strings.Repeat("1", 1<<20): "longer than 512",
	} {
		_, ours, err := ParseLine([]byte(line))
		if !ours || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, %v, want %q", line, ours, err, want)
		} else if len(err.Error()) > 200 || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%.60q: the reason is not fit to be shown: %.300q", line, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("tideline: step=120 total=5000 loss=2.31 checkpoint=100 phase=train rank=0"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, ours, err := ParseLine(line)
		if ours && err == nil && (r.Step < 0 || r.Total < 0 || r.Checkpoint > r.Step || r.Loss != r.Loss || len(line) > MaxLine) {
			t.Errorf("%q was believed: %+v", line, r)
		}
	})
}
