package training

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/internal/capacity"
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
		message += RoomFor(&a)
	}
	if len(v.Holders) > 0 {
		message += " Surplus that may give way: " + someHolders(v.Holders) + "."
	}
	return message
}

// gatedWorker is the first core worker that scheduling gates hold; nil for none.
func (p *planner) gatedWorker() *Worker {
	for _, w := range p.at[:p.minimum] {
		if w != nil && len(w.Gates) > 0 && !w.Terminating {
			return w
		}
	}
	return nil
}

func (p *planner) sayGated(w *Worker) string {
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

// RoomFor says what is free for a gang that does not fit, what of it is too little, and whether more is on its way.
func RoomFor(a *capacity.Answer) string { return free(a) + comes(a) }

// RoomAtMost says what there would be for a gang if nothing else ran, and what of it is too little.
func RoomAtMost(a *capacity.Answer) string {
	message := fmt.Sprintf("Of such pods it could give %d their place", a.Largest)
	if room := listed(a.Free, a.Short); room != "" {
		message += ", with " + room
	}
	if short := amounts(a.Short, nil); short != "" {
		message += "; it is short of " + short
	}
	if a.QueueLimit {
		message += " by the limit of its Queue"
	}
	return message + "."
}

// free says what is free, and what of it is too little.
func free(a *capacity.Answer) string {
	message := fmt.Sprintf("The largest gang of such workers that fits now: %d.", a.Largest)
	if room := listed(a.Free, a.Short); room != "" {
		message = fmt.Sprintf("Free for it: %s; the largest gang of such workers that fits now: %d.", room, a.Largest)
	}
	switch short := amounts(a.Short, nil); {
	case a.QueueLimit && short == "":
		return message + " The limit of the queue holds it back."
	case a.QueueLimit:
		return message + " The limit of the queue leaves it short of " + short + "."
	case short == "":
		return message + " Enough is free in all, but in pieces too small for its workers."
	default:
		return message + " It is short of " + short + "."
	}
}

// comes says that the room is on its way, for a gang that waits for nothing else.
func comes(a *capacity.Answer) string {
	if a.Leaving == nil {
		return ""
	}
	held := listed(a.Leaving, a.Short)
	if held == "" {
		held = "places"
	}
	return " Its room is on its way: pods that are leaving hold " + held +
		". It fits once they have gone, and nobody else is told to leave for it."
}

// listed lists amounts: GPUs and other extended resources alone where there are any, because they are what gangs wait for, and
// what the gang is short of.
func listed(all, short capacity.Amounts) string {
	extended := func(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }
	some := false
	for name := range all {
		some = some || extended(name)
	}
	return amounts(all, func(name corev1.ResourceName) bool { return !some || extended(name) || short[name] > 0 })
}

// Amounts lists amounts for people, extended resources first.
func Amounts(all capacity.Amounts) string { return amounts(all, nil) }

// amounts lists those that are wanted, all for nil, extended resources first.
func amounts(all capacity.Amounts, wanted func(corev1.ResourceName) bool) string {
	names := slices.SortedFunc(maps.Keys(all), func(a, b corev1.ResourceName) int {
		return cmp.Or(-cmp.Compare(strings.Count(string(a), "/"), strings.Count(string(b), "/")), cmp.Compare(a, b))
	})
	var words []string
	for _, name := range names {
		if wanted == nil || wanted(name) {
			words = append(words, quantity(name, all[name])+" "+string(name))
		}
	}
	return strings.Join(words, ", ")
}

func quantity(name corev1.ResourceName, amount int64) string {
	if name == corev1.ResourceCPU {
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	}
	if capacity.IsBytes(name) {
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return resource.NewQuantity(amount, resource.DecimalSI).String()
}
