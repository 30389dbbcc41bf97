package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tideline-io/tideline/test/testutil/markdown"
)

func someResults() []result {
	pods, tideline := strategies[0], strategy{key: "tideline", title: "Tideline", tideline: true}
	return []result{
		{strategy: pods, pool: 8, late: 60, deadlocks: 1, oldest: hours(39.5), held: 160},
		{strategy: pods, pool: 12, late: 0, commit: "1234abc"},
		{strategy: pods, pool: 16, late: 3, held: 300, worked: 100},
		{strategy: pods, pool: 20, late: 0},
		{strategy: tideline, pool: 8, late: 60},
		{strategy: tideline, pool: 12, late: 0, waitP50: 90 * time.Second, waitP99: time.Hour, held: 200, worked: 199.6},
	}
}

func TestTable(t *testing.T) {
	got := table(fixed, someResults())
	for _, want := range []string{
		"| plain pods that wait | 20 | 2.00 | 8: 60, 12: 0, 16: 3, 20: 0 | 1 | 0 | 0 |\n",
		"| Tideline | 12 | 1.20 | 8: 60, 12: 0 | 0 | 2 | 60 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %s:\n%s", want, got)
		}
	}
	if none := table(fixed, someResults()[:1]); !strings.Contains(none, "| plain pods that wait | more than tried |  | 8: 60 |") {
		t.Errorf("no pool kept every model fresh, but the table says\n%s", none)
	}
}

// Results that are not made again stay, and the file written again is the file.
func TestResultsOfTheFileStay(t *testing.T) {
	made := someResults()
	for i := range made {
		if made[i].strategy.tideline {
			made[i].strategy = strategies[len(strategies)-1]
		}
	}
	file := encoded(300, made)
	if again := encoded(300, join(decoded(file, 300), nil)); again != file {
		t.Errorf("the file has\n%s\nand was\n%s", again, file)
	}
	anew := result{strategy: strategies[0], pool: 12, late: 7}
	joined := join(decoded(file, 300), []result{anew})
	if len(joined) != len(made) || joined[1].late != 7 || joined[0].late != 60 {
		t.Errorf("one result made again gives %+v", joined)
	}
	if other := decoded(file, 100); len(other) > 0 {
		t.Errorf("results of another scale stay: %+v", other)
	}
}

// The page and the drawing say what the file of results has.
func TestPageHasTheResults(t *testing.T) {
	const beside = "../../../docs/benchmarks/merge"
	read := func(path string) string {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	all := decoded(read(beside+".csv"), 300)
	if text, _ := markdown.Marked(read(beside+".md"), command); len(all) == 0 || !strings.Contains(text, table(fixed, all)) {
		t.Errorf("the page has\n%s\nwant\n%s", text, table(fixed, all))
	}
	if drawing := chart(fixed.bound(), panels(fixed, all)); drawing != read(beside+".svg") {
		t.Error("the drawing is not that of the results")
	}
}

// The drawing is well-formed, and every point of it is inside.
func TestChart(t *testing.T) {
	got := chart(fixed.bound(), panels(fixed, someResults()))
	for decoder := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
	}
	for _, want := range []string{
		`d="M52.0 34.0L185.3 274.0L318.7 262.0L452.0 274.0"`, // 60, 0, 3 and 0 models late
		"Tideline", "models late, of 60", "work divided by time: 10 machines",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the drawing lacks %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
		t.Error("the drawing has coordinates that are no numbers")
	}
}

// Results of a partial run stand beside older ones, and the page says so.
func TestPageSaysWhatWasMeasured(t *testing.T) {
	old, anew := result{commit: "1234abc"}, result{commit: "5678def"}
	for want, results := range map[string][]result{
		"Measured at commit 1234abc. ":           {old, old},
		"Measured at commits 1234abc, 5678def. ": {old, anew, old},
	} {
		if said := conditions(300, time.Minute, results); !strings.HasPrefix(said, want) {
			t.Errorf("the page says %q, want %q", said, want)
		}
	}
}

func TestRoundUp(t *testing.T) {
	for x, want := range map[float64]float64{0: 1, 1: 1, 7.2: 8, 200: 200, 201: 300} {
		if got := roundUp(x); got != want {
			t.Errorf("roundUp(%v) = %v, want %v", x, got, want)
		}
	}
}
