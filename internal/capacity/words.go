package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// SayFree says what is free for a gang that does not fit, what it lacks, and whether that will be free soon.
func (a *Answer) SayFree() string { return a.describeFree() + a.describeLeaving() }

// SayEmpty says what there would be for a gang if nothing else ran, and what it would lack. one is what a member of the gang is
// called.
func (a *Answer) SayEmpty(one string) string {
	if o := a.Oversize; o != nil {
		there := "the largest node for it has " + FormatQuantity(o.Resource, o.Largest)
		if o.Largest == 0 {
			there = "no ready node has any"
		}
		return fmt.Sprintf("One %s asks for %s %s; %s.", one, FormatQuantity(o.Resource, o.Asks), o.Resource, there)
	}
	message := fmt.Sprintf("At most %d such %ss would fit%s", a.Largest, one, a.sayWhere())
	if room := a.Free.relevantFor(a.Short); room != "" {
		message += " into " + room
	}
	if short := a.Short.String(); short != "" {
		message += "; short of " + short
	}
	if a.QueueLimit {
		limiting := a.limiting()
		message += " by " + strings.ToLower(limiting[:1]) + limiting[1:]
	}
	return message + "."
}

// describeFree says what is free and what the gang lacks.
func (a *Answer) describeFree() string {
	message := fmt.Sprintf("The largest gang of such workers that fits now%s: %d.", a.sayWhere(), a.Largest)
	if room := a.Free.relevantFor(a.Short); room != "" && (a.Within == nil || a.Domain != "") {
		message = fmt.Sprintf("Free for it%s: %s; the largest gang of such workers that fits now: %d.", a.sayWhere(), room, a.Largest)
	}
	switch short := a.Short.String(); {
	case a.QueueLimit && short == "":
		return message + " " + a.limiting() + " holds it back."
	case a.QueueLimit:
		return message + " " + a.limiting() + " leaves it short of " + short + "."
	case short == "" && a.Ruled:
		return message + " Enough is free in all, but not where its workers may be beside other pods, or in pieces too small for them."
	case short == "":
		return message + " Enough is free in all, but in pieces too small for its workers."
	default:
		return message + " It is short of " + short + "."
	}
}

// describeLeaving says that the room will be free soon, for a gang that waits for nothing else.
func (a *Answer) describeLeaving() string {
	if a.Leaving == nil {
		return ""
	}
	held := a.Leaving.relevantFor(a.Short)
	if held == "" {
		held = "places"
	}
	return " Pods that are terminating hold " + held + ". It fits once they are gone, so no other worker has to leave for it."
}

// relevantFor lists amounts that matter for a gang: extended resources such as GPUs alone if there are any, because gangs mostly
// wait for those, and what the gang is short of.
func (a Amounts) relevantFor(short Amounts) string {
	extended := func(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }
	some := false
	for name := range a {
		some = some || extended(name)
	}
	return a.listWanted(func(name corev1.ResourceName) bool { return !some || extended(name) || short[name] > 0 })
}

// String lists amounts for people, extended resources first: "8 nvidia.com/gpu, 4 cpu".
func (a Amounts) String() string { return a.listWanted(nil) }

// names are the resources in the order for people.
func (a Amounts) names() []corev1.ResourceName {
	return slices.SortedFunc(maps.Keys(a), func(x, y corev1.ResourceName) int {
		return cmp.Or(-cmp.Compare(strings.Count(string(x), "/"), strings.Count(string(y), "/")), cmp.Compare(x, y))
	})
}

// listWanted lists the amounts that are wanted, all for nil, extended resources first.
func (a Amounts) listWanted(wanted func(corev1.ResourceName) bool) string {
	var words []string
	for _, name := range a.names() {
		if wanted == nil || wanted(name) {
			words = append(words, FormatQuantity(name, a[name])+" "+string(name))
		}
	}
	return strings.Join(words, ", ")
}

// FormatQuantity writes an amount of a resource as Kubernetes does, given CPU in thousandths of a core and all else in whole
// units: "1500m", "64Gi", "8".
func FormatQuantity(name corev1.ResourceName, amount int64) string {
	if name == corev1.ResourceCPU {
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	}
	if IsBytes(name) {
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return resource.NewQuantity(amount, resource.DecimalSI).String()
}
