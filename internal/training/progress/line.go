// Package progress understands what a training says of its steps: it parses the lines that worker 0 prints, measures how long a
// step usually takes, tells a hang from a pause that was announced, and accounts for the GPU time that became kept steps.
// docs/progress.md is the protocol. The package has no clock: times are arguments.
package progress

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	// Prefix begins every line of the protocol.
	Prefix = "tideline: "
	// MaxLine is the longest line that is read, in bytes, without its end.
	MaxLine = 512
	// mostSteps bounds steps: beyond it a number is no count of steps.
	mostSteps = 1_000_000_000_000_000
	// mostIndex bounds indices of workers, and mostSlowness how slow one may be.
	mostIndex, mostSlowness = 1_000_000, 1e6
)

// Phase is what a training does from a line on.
type Phase string

const (
	// PhaseTrain: it takes steps. This is the default of a line.
	PhaseTrain Phase = "train"
	// PhaseStart: the process has just started, and goes on at this step, which may be lower than the last one.
	PhaseStart Phase = "start"
	// PhaseEvaluate and PhaseCheckpoint: it evaluates or saves, and takes no step for as long as that lasts.
	PhaseEvaluate   Phase = "evaluate"
	PhaseCheckpoint Phase = "checkpoint"
	// PhaseEnd: it has taken its last step.
	PhaseEnd Phase = "end"
)

// Report is what one line says.
type Report struct {
	// Step is how many steps the training has taken, from 0 to 1e15.
	Step int64
	// Total is how many it will take; 0 for unknown.
	Total int64
	// Checkpoint is the step that the last saved checkpoint is of; -1 if the line does not say.
	Checkpoint int64
	// Loss is finite; it is 0 if the line does not say.
	Loss  float64
	Phase Phase
	// Slowest worker, if the ranks compare themselves.
	Slowest Slowest
}

// ParseLine reads one line of a log, without its end. ours is false for a line of somebody else, for which err is nil. A line
// that begins with [Prefix] and breaks the protocol yields an error, which says what is wrong and quotes at most 64 bytes.
func ParseLine(line []byte) (r Report, ours bool, err error) {
	rest, ours := bytes.CutPrefix(line, []byte(Prefix))
	if !ours {
		return Report{}, false, nil
	}
	if len(line) > MaxLine {
		return Report{}, true, fmt.Errorf("a line is longer than %d bytes", MaxLine)
	}
	r = Report{Step: -1, Checkpoint: -1, Phase: PhaseTrain}
	seen := map[string]bool{}
	for word := range strings.SplitSeq(strings.TrimSuffix(string(rest), "\r"), " ") {
		key, value, isPair := strings.Cut(word, "=")
		if !isPair {
			return Report{}, true, fmt.Errorf("%s is not KEY=VALUE", quote(word))
		}
		if seen[key] {
			return Report{}, true, fmt.Errorf("%s stands twice", quote(key))
		}
		seen[key] = true
		if err := r.set(key, value); err != nil {
			return Report{}, true, err
		}
	}
	if seen["slowest"] != seen["slowness"] {
		return Report{}, true, errors.New("slowest and slowness belong together")
	}
	return r, true, r.judge()
}

// set takes one value of a line.
func (r *Report) set(key, value string) (err error) {
	switch key {
	case "step":
		r.Step, err = wholeNumber(key, value)
	case "total":
		r.Total, err = wholeNumber(key, value)
	case "checkpoint":
		r.Checkpoint, err = wholeNumber(key, value)
	case "loss":
		r.Loss, err = strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(r.Loss) || math.IsInf(r.Loss, 0) {
			err = fmt.Errorf("loss=%s is no finite number", quote(value))
		}
	case "phase":
		switch p := Phase(value); p {
		case PhaseTrain, PhaseStart, PhaseEvaluate, PhaseCheckpoint, PhaseEnd:
			r.Phase = p
		default:
			err = fmt.Errorf("phase=%s is none of start, train, evaluate, checkpoint and end", quote(value))
		}
	case "slowest", "slowness":
		err = r.Slowest.set(key, value)
	case "rank":
		if value != "0" {
			err = fmt.Errorf("rank=%s: only rank 0 reports", quote(value))
		}
	default:
		err = fmt.Errorf("%s is no key of the protocol", quote(key))
	}
	return err
}

// judge says what contradicts itself in a line.
func (r *Report) judge() error {
	switch {
	case r.Step < 0:
		return errors.New("a line has no step")
	case r.Total > 0 && r.Step > r.Total:
		return fmt.Errorf("step=%d is beyond total=%d", r.Step, r.Total)
	case r.Checkpoint > r.Step:
		return fmt.Errorf("checkpoint=%d is beyond step=%d", r.Checkpoint, r.Step)
	}
	return nil
}

// wholeNumber reads digits and nothing else.
func wholeNumber(key, value string) (int64, error) {
	n, err := strconv.ParseUint(value, 10, 63)
	if err != nil || n > mostSteps || value[0] == '+' {
		return 0, fmt.Errorf("%s=%s is no whole number from 0 to 1e15", key, quote(value))
	}
	return int64(n), nil
}

// quote makes a part of a line safe to show, and short.
func quote(s string) string {
	const most = 32
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.QuoteToASCII(s)
}
