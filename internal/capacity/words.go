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

// SayFree says what is free for a gang that does not fit, what of it is too little, and whether more is on its way.
func (a *Answer) SayFree() string { return a.free() + a.comes() }

// SayEmpty says what there would be for a gang if nothing else ran, and what of it is too little.
func (a *Answer) SayEmpty() string {
	message := fmt.Sprintf("Of such pods it could give %d their place", a.Largest)
	if room := a.Free.listed(a.Short); room != "" {
		message += ", with " + room
	}
	if short := a.Short.String(); short != "" {
		message += "; it is short of " + short
	}
	if a.QueueLimit {
		message += " by the limit of its Queue"
	}
	return message + "."
}

// free says what is free, and what of it is too little.
func (a *Answer) free() string {
	message := fmt.Sprintf("The largest gang of such workers that fits now: %d.", a.Largest)
	if room := a.Free.listed(a.Short); room != "" {
		message = fmt.Sprintf("Free for it: %s; the largest gang of such workers that fits now: %d.", room, a.Largest)
	}
	switch short := a.Short.String(); {
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
func (a *Answer) comes() string {
	if a.Leaving == nil {
		return ""
	}
	held := a.Leaving.listed(a.Short)
	if held == "" {
		held = "places"
	}
	return " Its room is on its way: pods that are leaving hold " + held +
		". It fits once they have gone, and no other worker is asked to leave for it."
}

// listed lists amounts: GPUs and other extended resources alone where there are any, because they are what gangs wait for, and
// what the gang is short of.
func (a Amounts) listed(short Amounts) string {
	extended := func(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }
	some := false
	for name := range a {
		some = some || extended(name)
	}
	return a.list(func(name corev1.ResourceName) bool { return !some || extended(name) || short[name] > 0 })
}

// String lists amounts for people, extended resources first: "8 nvidia.com/gpu, 4 cpu".
func (a Amounts) String() string { return a.list(nil) }

// list lists those that are wanted, all for nil, extended resources first.
func (a Amounts) list(wanted func(corev1.ResourceName) bool) string {
	names := slices.SortedFunc(maps.Keys(a), func(x, y corev1.ResourceName) int {
		return cmp.Or(-cmp.Compare(strings.Count(string(x), "/"), strings.Count(string(y), "/")), cmp.Compare(x, y))
	})
	var words []string
	for _, name := range names {
		if wanted == nil || wanted(name) {
			words = append(words, FormatQuantity(name, a[name])+" "+string(name))
		}
	}
	return strings.Join(words, ", ")
}

// FormatQuantity writes an amount of a resource as Kubernetes does: thousandths of cores, bytes, else whole numbers.
func FormatQuantity(name corev1.ResourceName, amount int64) string {
	if name == corev1.ResourceCPU {
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	}
	if IsBytes(name) {
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return resource.NewQuantity(amount, resource.DecimalSI).String()
}
