// Outcome plays a public trace on a simulated cluster, under Volcano's own scheduler and the operator's own planner, and keeps
// what each subject made of it. docs/benchmarks/outcome.md has the rules.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tideline-io/tideline/test/perf/scheduler"
)

// loads are those of the page.
var loads = []float64{0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1}

// result is what one run made.
type result struct {
	Subject string
	Load    float64
	Seed    uint64
	Days    int
	Commit  string
	figures
}

// plan is what is to be run.
type plan struct {
	trace, only, results, commit, page string
	// whatIf has the answers of `tideline whatif` be held to what the scheduler makes of a change, instead of all else.
	whatIf bool
	// forecast has the answers of `tideline simulate` be held to when trainings started, instead of all else.
	forecast bool
	// stock has that be under Volcano's own configuration.
	stock bool

	loads       []float64
	days, seeds int
}

func main() {
	var p plan
	flag.StringVar(&p.trace, "trace", "../shared/data/philly.csv", "`file` of the jobs of Philly")
	flag.IntVar(&p.days, "days", 7, "`number` of days that are played")
	many := flag.String("loads", "0.5,0.6,0.7,0.8,0.9,1.0,1.1", "offered `loads`, with commas")
	flag.StringVar(&p.only, "only", "", "`name` of the only subject; none: all")
	flag.IntVar(&p.seeds, "seeds", 5, "`number` of seeds")
	flag.StringVar(&p.results, "results", "docs/benchmarks/outcome.jsonl",
		"`file` to which results are added; what it has is not run again")
	flag.StringVar(&p.commit, "commit", "", "`commit` that results are said to be of")
	flag.StringVar(&p.page, "page", "", "`page` into which all results are written; none: they are not")
	flag.BoolVar(&p.whatIf, "whatif", false, "hold answers of tideline whatif to what Volcano's scheduler makes of a change")
	flag.BoolVar(&p.forecast, "forecast", false, "hold answers of tideline simulate to when trainings started")
	flag.BoolVar(&p.stock, "stock", false, "with -whatif, under Volcano's own configuration")
	flag.Parse()
	err := p.readLoads(*many)
	if err == nil {
		err = p.do(context.Background())
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "outcome:", err)
		os.Exit(1)
	}
}

// do does what is asked, and writes the page of it if one is named.
func (p *plan) do(ctx context.Context) error {
	if p.whatIf || p.forecast {
		return p.compare(ctx)
	}
	if err := p.run(ctx); err != nil || p.page == "" {
		return err
	}
	return writePage(p.page, p.results)
}

// compare holds answers of commands to what becomes of trainings.
func (p *plan) compare(ctx context.Context) error {
	trace, err := p.openTrace()
	if err != nil {
		return err
	}
	program, done, err := scheduler.BuildAside(ctx)
	if err != nil {
		return err
	}
	defer done()
	if p.forecast {
		return p.compareForecasts(ctx, player{program}, trace)
	}
	return p.compareWhatIf(ctx, player{program}, trace)
}

func (p *plan) readLoads(text string) error {
	for _, one := range strings.Split(text, ",") {
		load, err := strconv.ParseFloat(one, 64)
		if err != nil {
			return err
		}
		p.loads = append(p.loads, load)
	}
	return nil
}

// run plays what the file of results does not have, seed by seed, so that whenever it is stopped all subjects have as many seeds.
func (p *plan) run(ctx context.Context) error {
	trace, err := p.openTrace()
	if err != nil {
		return err
	}
	missing, err := p.missing()
	if err != nil || len(missing) == 0 {
		return err
	}
	program, done, err := scheduler.BuildAside(ctx)
	if err != nil {
		return err
	}
	defer done()
	player := player{program}
	for _, is := range missing {
		jobs := draw(trace, is.Load, is.Seed, is.Days)
		if is.figures, err = player.play(ctx, is.of, jobs, is.Days); err != nil {
			return fmt.Errorf("%s, load %.1f, seed %d: %w", is.Subject, is.Load, is.Seed, err)
		}
		if err := addResult(p.results, &is.result); err != nil {
			return err
		}
		_, _ = fmt.Printf("%s, load %.1f, seed %d: %+v\n", is.Subject, is.Load, is.Seed, is.figures)
	}
	return nil
}

func (p *plan) openTrace() ([]traced, error) {
	file, err := os.Open(p.trace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	trace, err := readTrace(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.trace, err)
	}
	return trace, nil
}

// toPlay is a run without figures yet.
type toPlay struct {
	result

	of entrant
}

// missing lists the runs that the file of results does not have.
func (p *plan) missing() ([]toPlay, error) {
	have, err := readResults[result](p.results)
	if err != nil {
		return nil, err
	}
	var all []toPlay
	for seed := uint64(1); seed <= uint64(p.seeds); seed++ {
		for _, load := range p.loads {
			for _, e := range entrants {
				is := result{Subject: e.name, Load: load, Seed: seed, Days: p.days, Commit: p.commit}
				if (p.only == "" || p.only == e.name) && !slices.ContainsFunc(have, is.isOfSameRun) {
					all = append(all, toPlay{is, e})
				}
			}
		}
	}
	return all, nil
}

func (r *result) isOfSameRun(is result) bool {
	return r.Subject == is.Subject && r.Load == is.Load && r.Seed == is.Seed && r.Days == is.Days
}

// readResults reads a file of results, one a line; none of a file that is not there.
func readResults[T any](path string) (all []T, err error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	for from := json.NewDecoder(file); ; {
		var r T
		if err := from.Decode(&r); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, r)
	}
}

// addResult adds a line to a file of results.
func addResult(path string, r any) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(file).Encode(r), file.Close())
}
