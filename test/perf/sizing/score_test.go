package main

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// constantly is the outcome of a task of which each run needs as much, all the time, and twice of it in its last samples.
func constantly(need amounts, last int, recommended amounts) outcome {
	r := run{slices.Repeat([]float64{need.cpu}, 100), slices.Repeat([]float64{need.memory}, 100)}
	for i := range last {
		r.cpu[99-i], r.memory[99-i] = 2*need.cpu, 2*need.memory
	}
	o := outcome{
		tier: config.DefaultTiers()[0], requested: amounts{10 * need.cpu, 10 * need.memory},
		following: slices.Repeat([]run{r}, week), need: need,
	}
	for who := range contestants {
		o.recommended[who] = recommended
	}
	return o
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		last  int
		given amounts
		want  score
	}{
		{0, amounts{1, 1}, score{cpu: []float64{0}, memory: []float64{0}}},
		{1, amounts{1.5, 2}, score{cpu: []float64{50}, memory: []float64{100}}},
		{2, amounts{1.5, 2}, score{cpu: []float64{50}, memory: []float64{100}}},
		{5, amounts{1.5, 1.9}, score{cpu: []float64{50}, memory: []float64{90}, killed: week, violated: week}},
		{6, amounts{1.5, 2}, score{cpu: []float64{50}, memory: []float64{100}, often: week, violated: week}},
		{6, amounts{0.5, 0.5}, score{
			cpu: []float64{-50}, memory: []float64{-50}, often: week, killed: week, violated: week,
		}},
	} {
		c.want.runs, c.want.cutCPU, c.want.cutMemory = week, c.want.cpu, c.want.memory
		got := judge([]outcome{constantly(amounts{1, 1}, c.last, c.given)}, policy{who: krr})
		for _, slacks := range [][]float64{got.cpu, got.memory, got.cutCPU, got.cutMemory} {
			slacks[0] = math.Round(slacks[0]*1e6) / 1e6
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v for what needs twice in %d of 100 samples is\n%+v, want\n%+v", c.given, c.last, got, c.want)
		}
	}
}

// What is recommended is cut to what was asked for, or, of memory after a kill, to twice of that.
func TestGranted(t *testing.T) {
	o := outcome{requested: amounts{2, 8}}
	o.recommended[vpaTarget] = amounts{1, 12}
	for _, c := range []struct {
		policy policy
		killed bool
		want   amounts
	}{
		{policy{who: vpaTarget}, false, amounts{1, 8}},
		{policy{who: vpaTarget}, true, amounts{1, 12}},
		{policy{who: vpaTarget, factor: amounts{3, 2}}, false, amounts{2, 8}},
		{policy{who: vpaTarget, factor: amounts{3, 2}}, true, amounts{2, 16}},
		{policy{who: vpaTarget, factor: amounts{3, 2}, uncapped: true}, false, amounts{3, 24}},
		{policy{who: vpaTarget, asked: true}, true, amounts{2, 8}},
	} {
		o.killed = c.killed
		if got := c.policy.granted(o); got != c.want {
			t.Errorf("%+v grants %+v, want %+v", c.policy, got, c.want)
		}
	}
}

// By its factors each rival has the slack of Tideline, also where some of its requests are cut.
func TestRivalsHaveEqualSlack(t *testing.T) {
	outcomes := []outcome{constantly(amounts{1, 1}, 0, amounts{1.5, 1.2}), constantly(amounts{4, 2}, 0, amounts{7, 3})}
	outcomes[0].recommended[krr], outcomes[1].recommended[krr] = amounts{0.1, 5}, amounts{1, 11}
	outcomes[0].requested.cpu = 1.6
	for _, uncapped := range []bool{false, true} {
		all := rivals(outcomes, uncapped)
		want := judge(outcomes, all[tideline])
		for who, p := range all {
			got := judge(outcomes, p)
			if math.Abs(average(got.cpu)-average(want.cpu)) > 1e-4 || math.Abs(average(got.memory)-average(want.memory)) > 1e-4 {
				t.Errorf("%s has a slack of %.3f and %.3f, Tideline %.3f and %.3f", names[who], average(got.cpu), average(got.memory),
					average(want.cpu), average(want.memory))
			}
		}
		if cpu := all[krr].granted(outcomes[0]).cpu; !uncapped && cpu > 1.6 {
			t.Errorf("%.2f processors are granted to what asks for 1.6", cpu)
		}
	}
}

func TestTable(t *testing.T) {
	got := table([]played{{7, []outcome{constantly(amounts{1, 1}, 6, amounts{1.25, 2.2})}}})
	for _, want := range []string{
		"Seed 7 draws 1 tasks with 7 runs",
		"| exploratory | as asked | 900 |  | 0.0 | 900 |  | 0.0 |\n",
		"| exploratory | KRR | 25 | 0 | 100.0 | 120 | 105 | 0.0 |\n",
		"| exploratory | Tideline | 100.0 | 0.0 | 100.0 | | | |\n",
		"| exploratory | KRR | 100.0 | 0.0 | 100.0 | 100.0 | 0.0 | 100.0 |\n",
		"for seeds 7:\n", "| exploratory | 7 | 7 | 7 | 7 |\n",
		"| periodic | 7 | 7 + 0 | 7 + 0 | 7 + 0 | 7 + 0 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the tables lack %s:\n%s", want, got)
		}
	}
}

// The cell of a median has the points by which it is over a buffer of 30 %.
func TestCells(t *testing.T) {
	if got := median([]float64{0, 50, 60}, 130); got != "20" {
		t.Errorf("the cell of a median of 50 is %q", got)
	}
	if got := median(nil, 130); got != "" {
		t.Errorf("with nothing that is cut, the cell is %q", got)
	}
}
