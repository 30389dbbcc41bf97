package describe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// HangWords says that the training takes no steps, since when, and which workers and nodes are known to be in trouble. The state
// has figures with a stall.
func HangWords(s *jobstate.State) string {
	stall := s.Trained.Stall
	message := fmt.Sprintf("No step since %s, after step %d: usually one takes %s, and %s without a word is the limit "+
		"(progress.stall.factor).", FormatTime(stall.Since), s.Trained.Step, roundStep(stall.Usual), stall.Limit.Round(time.Second))
	var suspects []string
	for w := range s.AttemptWorkers() {
		_, silent := s.OnSilentNode(w)
		switch {
		case w.HasEnded() || w.Node == "":
		case silent:
			suspects = append(suspects, fmt.Sprintf("worker %d is on node %s, which does not answer", w.Index, w.Node))
		case !w.Ready && w.Index < s.Minimum:
			suspects = append(suspects, fmt.Sprintf("worker %d on node %s is not ready", w.Index, w.Node))
		case slices.Contains(s.Doubted, w.Node):
			suspects = append(suspects, fmt.Sprintf("worker %d is on node %s, where more workers failed than chance explains",
				w.Index, w.Node))
		}
	}
	const most = 4
	if n := len(suspects); n > most {
		suspects = append(suspects[:most], fmt.Sprintf("and %d more", n-most))
	}
	if len(suspects) > 0 {
		return message + " " + CapitalizeFirst(strings.Join(suspects, "; ")) + "."
	}
	node := "a node"
	if w := s.At[0]; w != nil && w.Node != "" {
		node = "node " + w.Node
	}
	return message + fmt.Sprintf(" All workers look alive; worker 0, which reports, is on %s. Look at the stacks of the ranks, as "+
		"by py-spy: the one that is not in a collective holds up the others.", node)
}

// roundStep rounds the time of a step to what is worth reading.
func roundStep(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
