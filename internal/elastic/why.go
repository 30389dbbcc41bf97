package elastic

import (
	"cmp"
	"fmt"
	"maps"
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
			free(&a), a.Largest), shortOf(&a))
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

// shortOf says what keeps the gang from fitting.
func shortOf(a *capacity.Answer) string {
	switch {
	case a.QueueLimit:
		return "The limit of the queue leaves it short of " + amounts(a.Short, nil) + "."
	case len(a.Short) > 0:
		return "It is short of " + amounts(a.Short, nil) + "."
	}
	return "Enough is free in all, but in pieces too small for its workers."
}

// free lists what is free: GPUs and other extended resources alone where there are any, because they are what gangs wait for,
// and what the gang is short of.
func free(a *capacity.Answer) string {
	extended := func(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }
	any := false
	for name := range a.Free {
		any = any || extended(name)
	}
	return amounts(a.Free, func(name corev1.ResourceName) bool { return !any || extended(name) || a.Short[name] > 0 })
}

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
	if len(words) == 0 {
		return "nothing in particular is asked"
	}
	return strings.Join(words, ", ")
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
