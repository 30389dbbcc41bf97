package view

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tideline-io/tideline/internal/platform/text"
)

// Past is what is on record about a training.
type Past struct {
	// Kept is true if there is a ledger; without one, only the last happening of each kind is known.
	Kept bool
	// Trouble says that the ledger could not be read; empty if it could.
	Trouble string
	// Happenings are what was decided about it, the oldest first.
	Happenings []Happening
	// Stays are the pods that it had since From, in order of their begin; Unread is true if there were too many to read.
	Stays  []Stay
	From   time.Time
	Unread bool
}

// Happening is something that was decided about a training, and why.
type Happening struct {
	At time.Time
	// Kind in one word, as the ledger has it; Reason in one word, Message in a sentence.
	Kind, Reason, Message string
}

// Stay is the time of a pod on its node.
type Stay struct {
	Begin, End time.Time
	// Accelerators that it held, in thousandths.
	Accelerators int64
}

// Sizes is how many pods a training had, over time.
type Sizes struct {
	// Steps are the times at which the number changed, the last mostSteps.
	Steps []SizeStep
	// Left is how many earlier ones are not listed.
	Left int
	// Line is the same as points of a picture of sizesWidth by sizesHeight.
	Line string
	// Most is the largest number, Begin and End are the ends of the picture.
	Most       int
	Begin, End Moment
}

// SizeStep is a change of the number of pods.
type SizeStep struct {
	At   Moment
	Pods int
}

const (
	// mostSteps and mostHappenings are how many of them a page lists, the last.
	mostSteps, mostHappenings = 100, 100
	sizesWidth, sizesHeight   = 1000, 120
)

// sizesOf counts pods over time, until now.
func sizesOf(stays []Stay, now time.Time) Sizes {
	if len(stays) == 0 {
		return Sizes{}
	}
	changes := map[int64]int{}
	for _, s := range stays {
		changes[s.Begin.Unix()]++
		if s.End.Before(now) {
			changes[s.End.Unix()]--
		}
	}
	times := make([]int64, 0, len(changes))
	for at, by := range changes {
		if by != 0 {
			times = append(times, at)
		}
	}
	slices.Sort(times)
	var all []point
	pods, most := 0, 0
	for _, at := range times {
		pods += changes[at]
		most = max(most, pods)
		all = append(all, point{at, pods})
	}
	sizes := Sizes{Most: most, Left: max(0, len(all)-mostSteps)}
	all = all[sizes.Left:]
	for _, p := range all {
		sizes.Steps = append(sizes.Steps, SizeStep{At: momentOf(time.Unix(p.at, 0), now), Pods: p.pods})
	}
	if len(all) > 0 {
		sizes.Begin, sizes.End = sizes.Steps[0].At, momentOf(now, now)
		sizes.Line = lineOf(all, now.Unix(), most)
	}
	return sizes
}

// point is how many pods there were from a time on, in Unix seconds.
type point struct {
	at   int64
	pods int
}

// lineOf draws steps as the points of a line, until now.
func lineOf(steps []point, now int64, most int) string {
	begin := steps[0].at
	length, height := max(now-begin, 1), max(most, 1)
	var b strings.Builder
	put := func(at int64, pods int) {
		x, y := (min(at, now)-begin)*sizesWidth/length, sizesHeight-pods*sizesHeight/height
		b.WriteString(strconv.FormatInt(x, 10) + "," + strconv.Itoa(y) + " ")
	}
	before := 0
	for _, s := range steps {
		put(s.at, before)
		put(s.at, s.pods)
		before = s.pods
	}
	put(now, before)
	return strings.TrimSpace(b.String())
}

// hoursOf is how many accelerator hours pods held until now.
func hoursOf(stays []Stay, now time.Time) string {
	var thousandths float64
	for _, s := range stays {
		end := s.End
		if end.After(now) {
			end = now
		}
		thousandths += max(0, end.Sub(s.Begin).Hours()) * float64(s.Accelerators)
	}
	return text.FormatThousandths(int64(thousandths) / 100 * 100)
}

// HappeningRow is a line of a training's story.
type HappeningRow struct {
	At                  Moment
	What, Reason, Words string
}

// whats are words for the kinds of happenings; a kind without any is its own.
var whats = map[string]string{
	"Waited": "waits", "Capped": "waits at a cap", "AwaitedApproval": "waits for approval", "Approved": "approved",
	"Ran": "began to run", "GaveWay": "gave way", "OutageMeasured": "outage measured",
	"SpeedMeasured": "speed measured", "LeftInVain": "left in vain",
	"Preempted": "preempted", "Stopped": "stopped", "Suspended": "suspended", "Restarted": "restarted", "WentOn": "went on",
	"Ended": "ended",
}

// storyOf lists happenings, the last first, and how many earlier ones it leaves out.
func storyOf(all []Happening, s *Sight, now time.Time) (rows []HappeningRow, left int) {
	left = max(0, len(all)-mostHappenings)
	for _, h := range slices.Backward(all[left:]) {
		rows = append(rows, HappeningRow{
			At: momentOf(h.At, now), What: nameText(cmp.Or(whats[h.Kind], h.Kind)), Reason: s.told(h.Reason), Words: s.told(h.Message),
		})
	}
	return rows, left
}
