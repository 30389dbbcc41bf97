package elastic

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/internal/capacity"
)

// why says why the core waits: its place, what it asks, what is free, the largest gang that would fit, and who holds surplus.
func (p *planner) why(asks string) string {
	v := p.o.Verdict
	if v.Waiting == 0 {
		return fmt.Sprintf("There is no room in queue %s for %s, which is placed all together or not at all; it starts by itself "+
			"when there is. Volcano says: %s", p.queue(), asks, clip(p.o.Core.Unschedulable, 1024))
	}
	parts := []string{fmt.Sprintf("Place %d of %d waiting in queue %s: asks for %s all together.",
		v.Place, v.Waiting, p.queue(), asks)}
	switch a := v.Answer; {
	case a.Unknown != "":
		parts = append(parts, fmt.Sprintf("Whether it fits is for Volcano to say, because it asks for %s.", a.Unknown))
	case a.Fits:
		parts = append(parts, "It fits now, and Volcano is about to place it.")
	default:
		parts = append(parts, fmt.Sprintf("Free for it: %s; the largest gang of such workers that fits now: %d.",
			free(a.Free), a.Largest))
		if a.QueueLimit {
			parts = append(parts, "The limit of the queue holds it back.")
		}
	}
	if len(v.Holders) > 0 {
		parts = append(parts, "Surplus that may give way: "+holders(v.Holders)+".")
	}
	return strings.Join(parts, " ")
}

// holders lists jobs and how many of their workers are meant.
func holders(all []capacity.Holder) string {
	words := make([]string, len(all))
	for i, h := range all {
		words[i] = fmt.Sprintf("%s (%d)", h.Job, h.Workers)
	}
	return strings.Join(words, ", ")
}

// free lists what is free, GPUs and other extended resources alone where there are any: they are what gangs wait for.
func free(amounts capacity.Amounts) string {
	var ordinary, extended []string
	for name, amount := range amounts {
		switch item := quantity(name, amount) + " " + string(name); {
		case strings.Contains(string(name), "/"):
			extended = append(extended, item)
		default:
			ordinary = append(ordinary, item)
		}
	}
	if len(extended) == 0 {
		extended = ordinary
	}
	if len(extended) == 0 {
		return "nothing in particular is asked"
	}
	slices.Sort(extended)
	return strings.Join(extended, ", ")
}

func quantity(name corev1.ResourceName, amount int64) string {
	if name == corev1.ResourceCPU {
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	}
	if name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage {
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return resource.NewQuantity(amount, resource.DecimalSI).String()
}
