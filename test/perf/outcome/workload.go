package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// The cluster, and the week of the trace. All of these are rules of docs/benchmarks/outcome.md, fixed before the first run.
const (
	nodes, gpusPerNode, gpusOfCluster = 63, 8, 500
	jitter                            = 30 * time.Minute
	day                               = 24 * time.Hour
)

var weekBegins = time.Date(2017, 10, 9, 0, 0, 0, 0, time.UTC)

// traced is a job of the trace.
type traced struct {
	team  string
	comes time.Time
	gpus  int32
	lasts time.Duration
}

// held is for how long the job would hold its GPUs between two times, if it started as it came.
func (t *traced) held(from, to time.Time) time.Duration {
	begin, end := t.comes, t.comes.Add(t.lasts)
	if begin.Before(from) {
		begin = from
	}
	if end.After(to) {
		end = to
	}
	return max(0, end.Sub(begin))
}

// weight is the GPU-time that the job would hold in the week, in seconds.
func (t *traced) weight(end time.Time) float64 {
	return float64(t.gpus) * t.held(weekBegins, end).Seconds()
}

// job is one of a run.
type job struct {
	name, team string
	// comes is when, after the beginning of the run. lasts is how long it trains on as many GPUs as were asked for.
	comes, lasts time.Duration
	asked        int32
}

// least and most are the range of a job, in workers of one GPU.
func (j *job) least() int32 { return max(1, j.asked/2) }

func (j *job) most() int32 {
	if j.asked == 1 {
		return 1
	}
	return 2 * j.asked
}

// readTrace reads jobs from columns timestamp, duration in seconds, num_gpus and cluster, which may stand among others.
func readTrace(from io.Reader) ([]traced, error) {
	rows := csv.NewReader(from)
	head, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("read the names of columns: %w", err)
	}
	var at [4]int
	for i, name := range []string{"timestamp", "duration", "num_gpus", "cluster"} {
		if at[i] = slices.Index(head, name); at[i] < 0 {
			return nil, fmt.Errorf("the trace has no column %s", name)
		}
	}
	var all []traced
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		comes, err1 := time.Parse(time.DateTime, row[at[0]])
		seconds, err2 := strconv.ParseFloat(row[at[1]], 64)
		gpus, err3 := strconv.ParseInt(row[at[2]], 10, 32)
		if err := cmp.Or(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("row %d: %w", len(all)+2, err)
		}
		if gpus < 1 || seconds <= 0 {
			continue // It held nothing.
		}
		all = append(all, traced{
			team: row[at[3]], comes: comes, gpus: int32(gpus), lasts: time.Duration(seconds * float64(time.Second)),
		})
	}
}

// draw draws the jobs of so many days at an offered load, in the order in which they come. The same arguments give the same jobs.
func draw(trace []traced, load float64, seed uint64, days int) []job {
	random := rand.New(rand.NewPCG(seed, 29))
	end := weekBegins.Add(time.Duration(days) * day)
	held := 0.0
	for i := range trace {
		held += float64(trace[i].gpus) * trace[i].held(weekBegins, end).Seconds()
	}
	times := load * gpusOfCluster * end.Sub(weekBegins).Seconds() / held
	var there []*traced
	for i := range trace {
		if trace[i].held(weekBegins, end) > 0 {
			there = append(there, &trace[i])
		}
	}
	slices.SortStableFunc(there, func(a, b *traced) int { return cmp.Compare(a.weight(end), b.weight(end)) })
	// Systematic sampling, by what jobs hold: a few of them hold most, and by chance alone a load would not be what it says.
	var all []job
	drawn := random.Float64()
	for _, t := range there {
		before := int(drawn)
		drawn += times
		for range int(drawn) - before {
			j := job{name: fmt.Sprintf("job-%d", len(all)), team: "team-" + t.team, lasts: t.lasts, asked: t.gpus}
			if t.comes.Before(weekBegins) {
				j.lasts = t.comes.Add(t.lasts).Sub(weekBegins)
			} else {
				moved := time.Duration((2*random.Float64() - 1) * float64(jitter))
				j.comes = max(0, t.comes.Sub(weekBegins)+moved).Truncate(time.Second)
			}
			all = append(all, j)
		}
	}
	slices.SortStableFunc(all, func(a, b job) int { return cmp.Compare(a.comes, b.comes) })
	return all
}

// offered is which part of the cluster the jobs would hold in so many days, if each started as it came.
func offered(jobs []job, days int) float64 {
	end, sum := time.Duration(days)*day, 0.0
	for i := range jobs {
		sum += float64(jobs[i].asked) * max(0, min(jobs[i].lasts, end-jobs[i].comes)).Seconds()
	}
	return sum / (gpusOfCluster * end.Seconds())
}
