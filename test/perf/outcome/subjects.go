package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// entrant is a subject as the page names it, with the configuration of Volcano under which it runs.
type entrant struct {
	name, configuration string
	on                  func(*cluster) (subject, error)
}

func asked(j *job) int32 { return j.asked }

func jobsOf(minAvailable, replicas func(*job) int32) func(*cluster) (subject, error) {
	return func(c *cluster) (subject, error) { return &volcanoJobs{c, minAvailable, replicas}, nil }
}

const ourName = "Tideline"

// entrants are what is compared.
var entrants = []entrant{
	{"fixed at max", stock, jobsOf((*job).most, (*job).most)},
	{"fixed at min", stock, jobsOf((*job).least, (*job).least)},
	{"as asked", stock, jobsOf(asked, asked)},
	{"Volcano Job, stock", stock, jobsOf((*job).least, (*job).most)},
	{"Volcano Job, ours", ours, jobsOf((*job).least, (*job).most)},
	{ourName, ours, func(c *cluster) (subject, error) { return newOperator(c) }},
}

// player plays runs with Volcano's program.
type player struct{ program, module string }

// newPlayer builds the program into a folder, where it stays and is found the next time; or into one that done removes.
func newPlayer(ctx context.Context, folder string) (p *player, done func(), err error) {
	done = func() {}
	if folder == "" {
		if folder, err = os.MkdirTemp("", "outcome"); err != nil {
			return nil, nil, err
		}
		done = func() { _ = os.RemoveAll(folder) }
	}
	p = &player{}
	if p.program, p.module, err = buildVolcano(ctx, folder); err != nil {
		done()
		return nil, nil, err
	}
	return p, done, nil
}

func (p *player) play(ctx context.Context, e entrant, jobs []job, days int) (figures, error) {
	configuration := e.configuration
	if configuration == stock {
		configuration = filepath.Join(p.module, stock)
	}
	v, err := startVolcano(ctx, p.program, configuration)
	if err != nil {
		return figures{}, err
	}
	began := time.Now()
	c, err := newCluster(v, jobs)
	if err != nil {
		v.kill()
		return figures{}, err
	}
	if c.subject, err = e.on(c); err != nil {
		v.kill()
		return figures{}, err
	}
	c.tell = func(hour time.Duration, sessions int) {
		_, _ = fmt.Fprintf(os.Stderr, "%s: %s after %s, %d sessions\n", e.name, hour, time.Since(began).Round(time.Second), sessions)
	}
	if err := c.play(days); err != nil {
		v.kill()
		return figures{}, err
	}
	offers := map[string]float64{}
	for i := range jobs {
		held := max(0, min(jobs[i].lasts, time.Duration(days)*day-jobs[i].comes))
		offers[jobs[i].team] += float64(jobs[i].asked) * held.Seconds() / (gpusOfCluster * (time.Duration(days) * day).Seconds())
	}
	f := c.figures(days, offers)
	f.Took = time.Since(began)
	return f, v.stop()
}
