package main

import (
	"fmt"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// timeline notes when the watches showed what happens between the newcomer's creation and its running.
type timeline struct {
	// host gives way to the newcomer.
	host, newcomer sample

	created, submitted, gaveWay, placed, running time.Time
}

// note compares a view with what has been seen so far.
func (t *timeline) note(v view, now time.Time) {
	job, exists := v.jobs[t.newcomer.name]
	if !exists {
		return
	}
	mark := func(moment *time.Time, happened bool) {
		if happened && moment.IsZero() {
			*moment = now
		}
	}
	core := int(t.newcomer.minimum)
	mark(&t.created, true)
	mark(&t.submitted, len(v.existing(t.newcomer.name)) >= core)
	mark(&t.gaveWay, len(v.placed(t.host.name)) < int(t.host.maximum))
	mark(&t.placed, len(v.placed(t.newcomer.name)) >= core)
	mark(&t.running, job.Status.Phase == v1beta1.PhaseRunning)
}

// String says how long the newcomer took to run, and what the time consists of.
func (t *timeline) String() string {
	return fmt.Sprintf("%s ran %s after it was created: %s until the operator had created its gang, %s until Volcano evicted "+
		"surplus of %s, %s until Volcano placed the gang in the room that became free, %s until its containers ran and its status "+
		"said so.", t.newcomer.name, seconds(t.running.Sub(t.created)),
		seconds(t.submitted.Sub(t.created)), seconds(t.gaveWay.Sub(t.submitted)), t.host.name,
		seconds(t.placed.Sub(t.gaveWay)), seconds(t.running.Sub(t.placed)))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
