package progress

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// sameRate is within how much a pace counts as the one that is shown, as a share of it.
const sameRate = 0.1

// ShowFigures returns what status shows of the figures, given what it shows; nil for nothing. It returns what is shown unless a
// word of it changes, so that a training that goes on as it does is written rarely.
func ShowFigures(shown *v1beta1.TrainingProgress, f Figures) *v1beta1.TrainingProgress {
	next := &v1beta1.TrainingProgress{Step: f.Step, Total: f.Total, Progress: shareOf(f)}
	if f.Checkpoint >= 0 {
		next.CheckpointStep = &f.Checkpoint
	}
	if f.StepTime > 0 {
		next.StepsPerSecond = formatRate(1 / f.StepTime.Seconds())
		next.TimeLeft = formatLeft(f.TimeLeft())
	}
	if shown == nil {
		next.Straggler = showStraggler(nil, f)
		return next
	}
	next.Straggler = showStraggler(shown.Straggler, f)
	if was, err := strconv.ParseFloat(shown.StepsPerSecond, 64); err == nil && f.StepTime > 0 &&
		math.Abs(1/f.StepTime.Seconds()-was) <= sameRate*was {
		next.StepsPerSecond = shown.StepsPerSecond
	}
	same := next.Progress == shown.Progress && next.StepsPerSecond == shown.StepsPerSecond && next.TimeLeft == shown.TimeLeft &&
		next.Straggler == shown.Straggler
	if same && f.Stall == nil {
		return shown
	}
	return next
}

// showStraggler is what status shows of the straggler, given what it shows: that of the first report that told of it.
func showStraggler(shown *v1beta1.TrainingStraggler, f Figures) *v1beta1.TrainingStraggler {
	switch {
	case f.Straggler == nil:
		return nil
	case shown != nil && shown.Worker == f.Straggler.Worker:
		return shown
	}
	return &v1beta1.TrainingStraggler{
		Worker: f.Straggler.Worker, Slowness: strconv.FormatFloat(f.Straggler.Slowness, 'f', 1, 64),
	}
}

// shareOf is how far the training is: in percent, or in steps of three digits where the total is unknown.
func shareOf(f Figures) string {
	if f.Total > 0 {
		return fmt.Sprintf("%d%%", int64(100*(float64(f.Step)/float64(f.Total))))
	}
	unit := int64(1)
	for f.Step/unit >= 1000 {
		unit *= 10
	}
	return fmt.Sprintf("step %d", f.Step/unit*unit)
}

// formatRate is a rate in two digits.
func formatRate(perSecond float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(perSecond, 'g', 2, 64), 64)
	if err != nil {
		return ""
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// formatLeft is a time in steps that grow with it, rounded up; empty for none.
func formatLeft(left time.Duration) string {
	if left <= 0 {
		return ""
	}
	unit := 6 * time.Hour
	for _, step := range []struct{ upTo, unit time.Duration }{
		{10 * time.Minute, time.Minute}, {2 * time.Hour, 5 * time.Minute}, {12 * time.Hour, 30 * time.Minute},
		{48 * time.Hour, time.Hour},
	} {
		if left <= step.upTo {
			unit = step.unit
			break
		}
	}
	if rest := left % unit; rest > 0 {
		left += unit - rest
	}
	days, hours, minutes := int(left/(24*time.Hour)), int(left/time.Hour)%24, int(left/time.Minute)%60
	var words strings.Builder
	for _, part := range []struct {
		n    int
		name string
	}{{days, "d"}, {hours, "h"}, {minutes, "m"}} {
		if part.n > 0 {
			fmt.Fprintf(&words, "%d%s", part.n, part.name)
		}
	}
	return words.String()
}
