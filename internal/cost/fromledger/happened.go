package fromledger

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

// telling are the kinds of decisions that happened reads.
var telling = []string{decisionlog.Ran, decisionlog.Restarted, decisionlog.Stopped, decisionlog.Withdrawn}

// happened is what decisions of a period say that a report has.
type happened struct {
	waits []cost.Wait
	stops []stop

	// last is when an attempt of a job was last stopped.
	last map[[2]string]time.Time
}

// stop is the loss of the work of all pods of a gang.
type stop struct {
	// of is the owner of the gang, and run the attempt or run of its pods.
	of  cost.Owner
	run string
	// by is the job that it made room for, as namespace/name; empty for none.
	by string
	// since and until bound the time whose work was lost.
	since, until time.Time
}

// gang tells the pods of a run from others.
type gang struct{ namespace, kind, task, run string }

func (s *stop) gangKey() gang { return gang{s.of.Namespace, s.of.Kind, s.of.Task, s.run} }

// addDecision takes in a decision of one of the kinds of telling, in the order in which they were made. Work that was lost
// already is not counted again.
func (h *happened) addDecision(d *ledger.Decision) {
	if d.Kind == decisionlog.Ran {
		if waited, err := strconv.ParseInt(d.Figures[decisionlog.WaitedSeconds], 10, 64); err == nil && waited >= 0 {
			h.waits = append(h.waits, cost.Wait{Job: d.Namespace + "/" + d.Name, Time: time.Duration(waited) * time.Second})
		}
		return
	}
	since, err := time.Parse(time.RFC3339, d.Figures[decisionlog.LostSince])
	if err != nil {
		return // Nothing was lost.
	}
	attempt := [2]string{d.UID, d.Attempt}
	if before := h.last[attempt]; before.After(since) {
		since = before
	}
	if h.last == nil {
		h.last = map[[2]string]time.Time{}
	}
	h.last[attempt] = d.At
	s := stop{of: ownerOf(d), run: d.Attempt, since: since, until: d.At}
	if d.Kind == decisionlog.Stopped {
		s.by = d.Other
	}
	h.stops = append(h.stops, s)
}

// ownerOf is the owner of the job that a decision is about.
func ownerOf(d *ledger.Decision) cost.Owner {
	return cost.Owner{
		Team: d.Figures[decisionlog.Profile], User: d.Figures[decisionlog.User], Namespace: d.Namespace,
		Kind: d.Figures[decisionlog.Object],
		Task: d.Figures[decisionlog.Task],
	}
}

// lossOf is what the pods of a gang lost, as far as they existed in the time of the stop, with or without a beneficiary.
func lossOf(s *stop, pods []ledger.Stay, by *cost.Owner) cost.Loss {
	l := cost.Loss{Of: s.of, For: by}
	for i := range pods {
		p := pods[i].ClippedTo(s.since, s.until)
		if !p.Begin.Before(p.End) {
			continue
		}
		l.Of.Team, l.Of.User = p.Profile, p.User // Rows are of what the ledger says.
		l.Pods = append(l.Pods, cost.LostPods{
			Number: 1, Since: p.Begin, Until: p.End, Surplus: p.Role == v1beta1.PartSurplus, Model: p.Model,
			Resources: cost.Resources(p.Resources),
		})
	}
	return l
}

// measuredOf is how much was free, and in words which gangs that was measured for.
func measuredOf(rooms []ledger.FreeRoom) (measured []cost.Measured, mix string) {
	gangs := int64(0)
	for _, r := range rooms {
		gangs += r.Gangs
		measured = append(measured, cost.Measured{At: r.At, Free: r.Free, Unusable: cost.Ratio{Value: r.Unusable, Known: r.Gangs > 0}})
	}
	if gangs > 0 {
		mix = fmt.Sprintf("gangs like those of the jobs and merges that there were (%.0f on average, at %d times)",
			float64(gangs)/float64(len(rooms)), len(rooms))
	}
	return measured, mix
}
