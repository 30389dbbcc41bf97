package training

import (
	"fmt"
	"strings"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// why says why the core waits: its place, what it asks, what is free, the largest gang that would fit, and who holds surplus.
func (p *planner) why(asks string) string {
	v := p.o.Verdict
	if v.Waiting == 0 {
		return fmt.Sprintf("There is no room in queue %s for %s, which is placed all together or not at all; it starts by itself "+
			"when there is.", p.queue(), asks) + p.volcanoSays()
	}
	message := fmt.Sprintf("Place %d of %d waiting in queue %s: asks for %s all together. ", v.Place, v.Waiting, p.queue(), asks)
	switch a := v.Answer; {
	case a.Unknown != "":
		message += fmt.Sprintf("Whether it fits is for Volcano to say, because it asks for %s.", a.Unknown) + p.volcanoSays()
	case a.Fits:
		message += "By Tideline's count it would fit now; Volcano decides." + p.volcanoSays()
	case a.Nodes == 0:
		message += "No node would take its workers, not even an empty one: see their nodeSelector, affinity, tolerations and the " +
			"resources that they name."
	default:
		message += a.Room()
	}
	if len(v.Holders) > 0 {
		message += " Surplus that may give way: " + someHolders(v.Holders) + "."
	}
	return message
}

// gatedWorker is the first core worker that scheduling gates hold; nil for none.
func (p *planner) gatedWorker() *podstate.Worker {
	for _, w := range p.at[:p.minimum] {
		if w != nil && len(w.Gates) > 0 && !w.Terminating {
			return w
		}
	}
	return nil
}

func (p *planner) sayGated(w *podstate.Worker) string {
	return fmt.Sprintf("Worker %d carries the scheduling gate %s, which keeps every scheduler from placing it. Who added the gate "+
		"must remove it; until then the job claims no room.", w.Index, text.Clip(strings.Join(w.Gates, ", "), 256))
}

// sayNotPlaced says that the core had room and was not placed, what that cost others, and what to do.
func (p *planner) sayNotPlaced(asks string) string {
	v := p.o.Verdict
	message := fmt.Sprintf("There has been room for %s since %s, and Volcano has not placed it within %s "+
		"(claims.placementTimeoutSeconds of the operator's configuration).", asks,
		v.Since.UTC().Format("2006-01-02 15:04:05 MST"), p.o.Config.Claims.PlacementTimeout())
	if len(v.From) > 0 {
		message += " These workers left for it, and have their room back: " + someHolders(v.From) + "."
	}
	return message + " No other worker leaves for it until its pods, its Queue or the nodes that it may use change. Check that " +
		"Volcano's scheduler runs, and what it says of PodGroup " + p.o.Job.Name + "." + p.volcanoSays()
}

// volcanoSays adds Volcano's own words, if it has said anything.
func (p *planner) volcanoSays() string {
	if p.o.Core == nil || p.o.Core.Unschedulable == "" {
		return ""
	}
	return " Volcano says: " + text.Clip(p.o.Core.Unschedulable, 1024)
}

// someHolders lists the first three, and counts the rest.
func someHolders(all []capacity.Holder) string {
	const most = 3
	if len(all) <= most {
		return holders(all)
	}
	var rest int32
	for _, h := range all[most:] {
		rest += h.Workers
	}
	others := "1 other job"
	if n := len(all) - most; n > 1 {
		others = fmt.Sprintf("%d other jobs", n)
	}
	return fmt.Sprintf("%s and %s (%d)", holders(all[:most]), others, rest)
}

// holders lists jobs and how many of their workers are meant.
func holders(all []capacity.Holder) string {
	words := make([]string, len(all))
	for i, h := range all {
		words[i] = fmt.Sprintf("%s (%d)", h.Job, h.Workers)
	}
	return strings.Join(words, ", ")
}
