package training

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/growth"
)

const (
	// sameSpeed is within how much a speed counts as the one that is known, as a share of it: each write wakes all who watch jobs.
	sameSpeed = 0.1
	// speedFor is for how long a speed stays as it was measured.
	speedFor = 10 * time.Minute
)

// noteSpeed writes down how fast the training goes with its present workers. What a step is worth may depend on the number of
// workers, so that speed is the share of the whole training that is done in an hour; where no total is said, nothing is learnt.
func (p *follower) noteSpeed() {
	if p.Spec.Progress == nil || p.Maximum <= p.Minimum {
		return
	}
	known := p.Status.Elasticity
	if (known == nil || len(known.Speeds) == 0) && len(p.TaskSpeeds) > 0 {
		p.Growth().NoteSpeeds(slices.Clone(p.TaskSpeeds))
	}
	t := p.Trained
	if t == nil || !t.Settled || t.Fresh || t.Stall != nil || t.Total <= 0 || t.StepTime <= 0 {
		return
	}
	size := p.countTraining()
	perHour := 100 * time.Hour.Seconds() / t.StepTime.Seconds() / float64(t.Total)
	if size > 0 && perHour > 0 && !math.IsInf(perHour, 0) {
		p.keepSpeed(size, perHour)
	}
}

// countTraining counts the workers that train together; 0 while others are about to join them, because the pace is not of this
// size for long then.
func (p *follower) countTraining() (n int32) {
	for w := range p.AttemptWorkers() {
		switch {
		case w.Terminating || w.HasEnded():
		case w.Ready:
			n++
		default:
			return 0
		}
	}
	return n
}

// keepSpeed writes down a speed, unless what is known says as much.
func (p *follower) keepSpeed(size int32, perHour float64) {
	var all []v1beta1.MeasuredSpeed
	if e := p.Status.Elasticity; e != nil {
		all = e.Speeds
	}
	for _, known := range growth.ReadSpeeds(all) {
		if known.Workers == size && math.Abs(perHour-known.PerHour) <= sameSpeed*known.PerHour {
			return
		}
	}
	for i := range all {
		if age := p.Now.Sub(all[i].Time.Time); all[i].Workers == size && age >= 0 && age < speedFor {
			return
		}
	}
	p.Growth().NoteSpeeds(growth.KeepSpeed(all, v1beta1.MeasuredSpeed{
		Workers: size, PercentPerHour: formatSpeed(perHour), Time: p.StatusTime(),
	}))
}

// formatSpeed is a speed in three digits that count. What is beyond them is noise.
func formatSpeed(perHour float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(perHour, 'g', 3, 64), 64)
	if err != nil {
		return "0"
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
