package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tideline-io/tideline/test/perf/scheduler"
)

// entrant is a subject as the page names it.
type entrant struct {
	name string
	// ours is true under the configuration that Tideline ships, and false under Volcano's own.
	ours bool
	on   func(*cluster) (subject, error)
}

func asked(j *job) int32 { return j.asked }

func jobsOf(minAvailable, replicas func(*job) int32) func(*cluster) (subject, error) {
	return func(c *cluster) (subject, error) { return &volcanoJobs{c, minAvailable, replicas}, nil }
}

const ourName = "Tideline"

// entrants are what is compared.
var entrants = []entrant{
	{"fixed at max", false, jobsOf((*job).most, (*job).most)},
	{"fixed at min", false, jobsOf((*job).least, (*job).least)},
	{"as asked", false, jobsOf(asked, asked)},
	{"Volcano Job, stock", false, jobsOf((*job).least, (*job).most)},
	{"Volcano Job, ours", true, jobsOf((*job).least, (*job).most)},
	{ourName, true, func(c *cluster) (subject, error) { return newOperator(c) }},
}

// player plays runs with Volcano's program.
type player struct{ *scheduler.Program }

func (p *player) play(ctx context.Context, e entrant, jobs []job, days int) (figures, error) {
	began := time.Now()
	c, err := p.playOn(ctx, e, jobs, days, nil)
	if err != nil {
		return figures{}, err
	}
	offers := map[string]float64{}
	for i := range jobs {
		held := max(0, min(jobs[i].lasts, time.Duration(days)*day-jobs[i].comes))
		offers[jobs[i].team] += float64(jobs[i].asked) * held.Seconds() / (gpusOfCluster * (time.Duration(days) * day).Seconds())
	}
	f := c.figures(days, offers)
	f.Took = time.Since(began)
	return f, nil
}

// playOn plays a run to its end. capabilities bound what teams hold; nil for no team.
func (p *player) playOn(ctx context.Context, e entrant, jobs []job, days int, capabilities map[string]int64) (*cluster, error) {
	configuration := p.Stock
	if e.ours {
		configuration = p.Ours
	}
	v, err := p.Start(ctx, configuration)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	c, err := newCluster(v, jobs)
	if err == nil {
		c.bound(capabilities)
		c.subject, err = e.on(c)
	}
	if err == nil {
		c.tell = func(hour time.Duration, sessions int) {
			_, _ = fmt.Fprintf(os.Stderr, "%s: %s after %s, %d sessions\n", e.name, hour, time.Since(began).Round(time.Second), sessions)
		}
		err = c.play(days)
	}
	if err != nil {
		v.Kill()
		return nil, err
	}
	return c, v.Stop()
}
