package devices

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// What pods may ask of shared GPUs that is not judged, in the words of package capacity.
const (
	// OtherShares is for parts of other device plugins, and for vGPUs that are asked for in a way that Volcano reads oddly.
	OtherShares = "shares of GPUs other than a number of vGPUs with memory and cores"
	// OtherMode is for slices of MIG, whose sizes only the scheduler knows.
	OtherMode = "vGPUs of a mode other than hami-core"
	// SomeModels is for models of GPUs that an annotation names.
	SomeModels = "vGPUs of models that an annotation names"
	// Spread is for pods that stay off each other's devices.
	Spread = "vGPUs on other devices than those of its group"
	// Percentage is for memory in per cent, which Volcano reads only where a ConfigMap of its device plugin says so.
	Percentage = "vGPUs with memory in per cent"
	// Unclear is for nodes that do not tell what is free of each of their devices, while it matters what is.
	Unclear = "vGPUs, and nodes that may have them do not tell what is free of each device"
)

// ListUnjudged lists all of those.
func ListUnjudged() []string {
	return []string{OtherShares, OtherMode, SomeModels, Spread, Percentage, Unclear}
}

// Wish is what one container asks: so many devices, and of each so much memory in MiB, 0 for all of it, and per cent of cores.
type Wish struct{ Devices, Memory, Cores int64 }

// Wishes are those of a pod's containers, in their order; nil for a pod that asks for no devices.
type Wishes []Wish

// others are resources that are parts of devices too, by other device plugins.
var others = []corev1.ResourceName{
	"volcano.sh/gpu-number", "volcano.sh/gpu-memory", "aliyun.com/gpu-mem", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage",
	"nvidia.com/gpucores",
}

// WishesOf reads what a pod asks of devices. unjudged names the first thing that is not judged; empty if all is.
func WishesOf(annotations map[string]string, spec *corev1.PodSpec) (all Wishes, unjudged string) {
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; asksAny(c, others) || asksAny(c, []corev1.ResourceName{Number, Memory, Cores, percentage}) {
			return nil, OtherShares
		}
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		switch {
		case asksAny(c, others):
			return nil, OtherShares
		case amountOf(c, percentage) > 0:
			return nil, Percentage
		case !asks(c, Number) && !asks(c, Memory):
			continue
		}
		w := Wish{Devices: 1, Memory: amountOf(c, Memory), Cores: amountOf(c, Cores)}
		if asks(c, Number) {
			w.Devices = amountOf(c, Number)
		}
		if w.Devices <= 0 || max(w.Devices, w.Memory, w.Cores) > mostAmount || min(w.Memory, w.Cores) < 0 {
			return nil, OtherShares
		}
		all = append(all, w)
	}
	if len(all) == 0 {
		return nil, ""
	}
	return all, unjudgedBy(annotations)
}

// unjudgedBy names what annotations of a pod ask of its devices.
func unjudgedBy(annotations map[string]string) string {
	mode, chosen := annotations[Mode]
	_, uses := annotations[Uses]
	_, avoids := annotations[Avoids]
	switch {
	case chosen && mode != sharing:
		return OtherMode
	case uses || avoids:
		return SomeModels
	case annotations[Policy] == "spread":
		return Spread
	}
	return ""
}

// AnnotatedAlike is true if annotations of two pods ask the same of their devices.
func AnnotatedAlike(a, b map[string]string) bool {
	return !slices.ContainsFunc(AskingAnnotations(), func(key string) bool {
		x, inA := a[key]
		y, inB := b[key]
		return inA != inB || x != y
	})
}

// AskingAnnotations are those by which pods ask something of devices.
func AskingAnnotations() []string { return []string{Mode, Policy, Uses, Avoids} }

func asksAny(c *corev1.Container, names []corev1.ResourceName) bool {
	return slices.ContainsFunc(names, func(name corev1.ResourceName) bool { return asks(c, name) })
}

// CacheKey is the same for pods that ask the same of devices; empty for those that ask for none.
func (w Wishes) CacheKey() string {
	if len(w) == 0 {
		return ""
	}
	return fmt.Sprint("\ndevices ", []Wish(w))
}

// CountFitting is how many such pods fit beside each other, at most limit, given what all devices of a node have and what is free
// of them.
func (w Wishes) CountFitting(all, free []int64, limit int32) int32 {
	// One device a pod: any order gives the same number, so it is counted without taking any.
	if len(w) == 1 && w[0].Devices == 1 {
		n := int64(0)
		for i := 0; i < len(all); i += Columns {
			n += w[0].fitOn(all[i:i+Columns], free[i:i+Columns])
		}
		return int32(min(n, int64(limit)))
	}
	return w.TakeDevices(all, slices.Clone(free), limit)
}

// fitOn is how many such parts a device has room for.
func (w Wish) fitOn(all, free []int64) int64 {
	n, memory := max(0, free[0]), w.Memory
	if memory == 0 {
		memory = all[1]
	}
	if memory > 0 {
		n = min(n, max(0, free[1])/memory)
	}
	switch {
	case w.Cores == allCores && free[0] < all[0], free[2] <= 0:
		return 0 // It would be alone there, and is not; or who is there has all cores.
	case w.Cores > 0:
		n = min(n, free[2]/w.Cores)
	}
	return n
}

// TakeDevices takes devices for pods, one after another and at most n, from what is free, and returns for how many there were
// enough. The fullest device is taken first, as config/volcano-vgpu has it. Where each pod asks for one device any order gives
// the same number.
func (w Wishes) TakeDevices(all, free []int64, n int32) (taken int32) {
	before := make([]int64, len(free))
	for ; taken < n; taken++ {
		copy(before, free)
		for _, wish := range w {
			if !wish.take(all, free) {
				copy(free, before)
				return taken
			}
		}
	}
	return taken
}

func (w Wish) take(all, free []int64) bool {
	order, left := make([]int, len(all)/Columns), w.Devices
	for i := range order {
		order[i] = i * Columns
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b+1]-free[b+1], all[a+1]-free[a+1]) })
	for _, i := range order {
		if left == 0 {
			break
		}
		if w.fitOn(all[i:i+Columns], free[i:i+Columns]) == 0 {
			continue
		}
		memory := w.Memory
		if memory == 0 {
			memory = all[i+1]
		}
		free[i]--
		free[i+1] -= memory
		free[i+2] -= w.Cores
		left--
	}
	return left == 0
}
