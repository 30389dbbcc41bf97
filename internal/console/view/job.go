package view

import (
	"cmp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Job is a training's page: what it does, and how it came there.
type Job struct {
	Row JobRow
	// Team is the team that it counts for, if the reader may see it.
	Team    *Choice
	Figures []Figure
	// Notes are sentences about what else matters now.
	Notes []string
	Story []HappeningRow
	// Earlier is how many lines of the story are not listed.
	Earlier int
	Sizes   Sizes
	// Limits say what of the story is not known, and why.
	Limits []string
}

// FindJob finds a training that the reader may see.
func (m *Model) FindJob(s *Sight, name types.NamespacedName) *v1beta1.ElasticTrainingJob {
	if !s.SeesJobs(name.Namespace) {
		return nil
	}
	for _, j := range m.Jobs {
		if j.Namespace == name.Namespace && j.Name == name.Name {
			return j
		}
	}
	return nil
}

// NewJob makes a training's page.
func NewJob(j *v1beta1.ElasticTrainingJob, past *Past, s *Sight, now time.Time) Job {
	page := Job{Row: rowOf(j, s, now), Sizes: sizesOf(past.Stays, now)}
	if p := j.Status.Profile; s.Profiles && p != "" && p != v1beta1.DefaultProfile {
		page.Team = &Choice{Label: nameText(p), Path: teamPath(p)}
	}
	page.Figures = jobFigures(j, past, now)
	page.Notes = jobNotes(j, s, now)
	page.Story, page.Earlier = storyOf(past.Happenings, s, now)
	switch {
	case past.Trouble != "":
		page.Limits = append(page.Limits, past.Trouble)
	case !past.Kept:
		page.Limits = append(page.Limits, "The operator keeps no ledger: of each kind only the last happening is known, and no sizes.")
	case past.Unread:
		page.Limits = append(page.Limits, "It had too many pods to draw all of them.")
	}
	return page
}

// jobFigures are the figures of a training.
func jobFigures(j *v1beta1.ElasticTrainingJob, past *Past, now time.Time) []Figure {
	st := &j.Status
	figures := []Figure{
		{Label: "Workers", Value: nameText(cmp.Or(st.Summary, "none")), Note: "ready/existing (range)"},
		{Label: "Accelerators", Value: strconv.FormatInt(st.Accelerators, 10), Note: "that ready workers hold"},
		waitFigure(j, now),
		{Label: "Restarts", Value: strconv.Itoa(int(st.Restarts)), Note: "losses of workers that cost it one"},
	}
	if a := st.Attempt; a != nil {
		figures = append(figures, Figure{Label: "Attempt", Value: strconv.Itoa(int(a.Number)), Note: "since " +
			momentOf(a.StartTime.Time, now).Ago})
	}
	if p := st.Training; p != nil {
		note := strconv.FormatInt(p.Step, 10) + " steps"
		if p.Total > 0 {
			note += " of " + strconv.FormatInt(p.Total, 10)
		}
		if p.TimeLeft != "" {
			note += ", " + nameText(p.TimeLeft) + " left"
		}
		figures = append(figures, Figure{Label: "Progress", Value: nameText(cmp.Or(p.Progress, "unknown")), Note: note})
		if c := p.CheckpointStep; c != nil {
			figures = append(figures, Figure{Label: "Checkpoint", Value: "step " + strconv.FormatInt(*c, 10), Note: "the last saved"})
		}
	}
	if past.Kept && past.Trouble == "" && !past.Unread {
		figures = append(figures, Figure{
			Label: "Accelerator hours", Value: hoursOf(past.Stays, now), Note: "held since " + momentOf(past.From, now).Human,
		})
	}
	return figures
}

// waitFigure is how long a training waited before it ran, or has waited.
func waitFigure(j *v1beta1.ElasticTrainingJob, now time.Time) Figure {
	if seconds := j.Status.WaitSeconds; seconds != nil {
		return Figure{Label: "Waited", Value: lasting(time.Duration(*seconds) * time.Second), Note: "until it first ran"}
	}
	until := now
	if end := j.Status.CompletionTime; end != nil {
		until = end.Time
	}
	return Figure{Label: "Waited", Value: lasting(until.Sub(j.CreationTimestamp.Time)), Note: "it never ran"}
}

// mostNotes bounds the sentences of a page.
const mostNotes = 24

// jobNotes say what else matters: conditions that differ from the main one, room that comes, checkpoints, losses, nodes.
func jobNotes(j *v1beta1.ElasticTrainingJob, s *Sight, now time.Time) []string {
	st := &j.Status
	var notes []string
	for _, c := range st.Conditions {
		if c.Message != "" && c.Message != st.Message && c.Reason != st.Reason {
			notes = append(notes, s.told(c.Type+" "+string(c.Status)+", "+c.Reason+": "+c.Message))
		}
	}
	for _, from := range st.RoomFrom {
		notes = append(notes, s.told(count(from.Workers, "worker")+" of "+from.Namespace+"/"+from.Name+" leave to make room."))
	}
	if c := st.Checkpoint; c != nil {
		notes = append(notes, line("Worker 0 was asked for a checkpoint "+momentOf(c.RequestTime.Time, now).Ago+", before: "+c.For+"."))
	}
	if f := st.LastFailure; f != nil {
		notes = append(notes, s.told("The last failure, "+momentOf(f.Time.Time, now).Ago+", was of worker "+strconv.Itoa(int(f.Worker))+
			", "+f.Reason+": "+f.Message))
	}
	if e := st.Elasticity; e != nil && e.NextGrowthTime != nil && e.NextGrowthTime.After(now) {
		notes = append(notes, "It grows again "+momentOf(e.NextGrowthTime.Time, now).Ago+" at the earliest.")
	}
	for i := range st.AvoidedNodes {
		n := &st.AvoidedNodes[i]
		what := "rejected"
		if n.Failed {
			what = "rejected or failed"
		}
		notes = append(notes, line("Node "+n.Name+" "+what+" "+count(n.Rejections, "worker")+", last with "+n.Reason+"."))
	}
	if z := st.Sizing; z != nil {
		notes = append(notes, "Sizing has looked at its requests: tideline sizing shows them.")
	}
	return notes[:min(len(notes), mostNotes)]
}
