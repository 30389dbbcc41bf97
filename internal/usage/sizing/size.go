package sizing

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// Resources that are sized.
const (
	CPU    = string(corev1.ResourceCPU)
	Memory = string(corev1.ResourceMemory)
)

// What a container is granted of CPU or memory:
//
//	cap     = used × buffer × (1 + 1/days − 1/window) × growth            (estimate.go, growth.go)
//	granted = min(request, max(cap, least amount of the tier))
//
//	used     CPU: the processors that suffice for the tier's share of the time, 95 % for example. Memory: the peak
//	buffer   of the tier, in percent
//	days     how long the task was seen in the window: a short history gets a wider cap
//	growth   from 1 to 1.5, if use rises from day to day
//
// Nothing is cut if metrics cover too little, or if the container ran at its limit. What it is known to need of memory it gets,
// also beyond its request (memory.go).

// most is the largest number of resources in a job's status.
const most = 64

// Ask is what the pods of a role request.
type Ask struct {
	Role Role
	// Containers of the pod's template, with what the job overrides for the role.
	Containers []corev1.Container
}

// Rules are the mode and the tier by which a job is sized.
type Rules struct {
	Mode v1beta1.SizingMode
	// Tier of the job.
	Tier config.Tier
	// Before is what the job's last attempt was given; nil for the first.
	Before *v1beta1.SizingStatus
}

// SizeRequests computes what each container needs of CPU and memory. It cuts a request only with enough evidence, and exceeds one
// only of memory that the container is known to need. It returns nil if sizing is disabled.
func SizeRequests(asks []Ask, h History, r Rules, now time.Time) *v1beta1.SizingStatus {
	if r.Mode == v1beta1.SizingDisabled {
		return nil
	}
	st := &v1beta1.SizingStatus{Mode: r.Mode, Time: metav1.NewTime(now.Truncate(time.Second))}
	for _, ask := range asks {
		for i := range ask.Containers {
			c := &ask.Containers[i]
			for _, name := range []string{CPU, Memory} {
				s := sizer{h: h, rules: r, now: now, part: Part{ask.Role, c.Name}, resource: name}
				if s.requested, s.limit = requestAndLimit(c.Resources, name); s.requested > 0 && len(st.Resources) < most {
					st.Resources = append(st.Resources, s.sizeResource())
				}
			}
		}
	}
	st.Summary = summaryLine(st)
	st.Accelerators = h.DescribeAccelerators()
	return st
}

// requestAndLimit returns request and limit of a container, in millicores or bytes; 0 for none. A missing request is the
// limit, as the API server defaults it.
func requestAndLimit(r corev1.ResourceRequirements, name string) (requested, limit int64) {
	if q, ok := r.Limits[corev1.ResourceName(name)]; ok {
		limit = wholeAmount(q, name)
	}
	if q, ok := r.Requests[corev1.ResourceName(name)]; ok {
		return wholeAmount(q, name), limit
	}
	return limit, limit
}

func wholeAmount(q resource.Quantity, name string) int64 {
	if name == CPU {
		return q.MilliValue()
	}
	return q.Value()
}

// toQuantity is an amount as a quantity that people read: 500m, 16Gi.
func toQuantity(amount int64, name string) resource.Quantity {
	if name == CPU {
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	}
	return *resource.NewQuantity(amount, resource.BinarySI)
}

// sizer sizes one resource of a container.
type sizer struct {
	h         History
	rules     Rules
	now       time.Time
	part      Part
	resource  string
	requested int64
	limit     int64
}

func (s *sizer) sizeResource() v1beta1.SizedResource {
	rule := s.rules.Tier.Sizing
	e := s.h.Estimate(s.part, s.resource, rule)
	sized := v1beta1.SizedResource{
		Role: string(s.part.Role), Container: s.part.Container, Resource: s.resource,
		Requested: toQuantity(s.requested, s.resource),
	}
	granted := s.requested
	before := s.sizedBefore()
	// The kill of an earlier attempt counts as long as the window. Otherwise the next attempt would be cut again and killed again.
	if before != nil && before.OOMKilledTime != nil && s.now.Sub(before.OOMKilledTime.Time) < s.windowLength() {
		sized.OOMKilledTime = before.OOMKilledTime
	}
	switch killed := s.resource == Memory && (s.h.Usage[s.part].OOMKills > 0 || sized.OOMKilledTime != nil); {
	// First, because use says too little about a container that ran out of memory: it was killed before it used what it needs.
	case killed && !s.showsNeed():
		sized.Reason = v1beta1.SizedByOOM
		granted = s.raisedRequest()
	case s.h.Unavailable != "":
		sized.Reason = v1beta1.SizedByMetrics
		granted = s.grantedBefore(before)
	case e.Reason != v1beta1.SizedByUse:
		sized.Reason = e.Reason
	default:
		sized.Reason = v1beta1.SizedByUse
		if granted = min(s.requested, max(e.Cap, tierFloor(s.resource, rule))); granted == s.requested {
			sized.Reason = v1beta1.SizedFits
		}
	}
	lifted := false
	if s.resource == Memory && sized.Reason != v1beta1.SizedByOOM {
		granted, lifted = s.lift(granted, e, &sized)
	}
	sized.Sized = toQuantity(granted, s.resource)
	if granted == s.requested {
		sized.Sized = sized.Requested
	}
	sized.Message = s.explainSizing(e, sized)
	if lifted {
		sized.Message = s.explainNeed(e)
	}
	return sized
}

// lift has what is granted hold what the container is known to need, and tells whether that is more.
func (s *sizer) lift(granted int64, e Estimate, sized *v1beta1.SizedResource) (lifted int64, more bool) {
	need := s.knownNeed(e)
	if need <= granted {
		return granted, false
	}
	switch {
	case need > s.requested && s.outgrows():
		sized.Reason = v1beta1.SizedByPeak
	case need > s.requested:
		sized.Reason = v1beta1.SizedByOOM
	case need == s.requested && sized.Reason == v1beta1.SizedByUse:
		sized.Reason = v1beta1.SizedFits
	}
	return need, true
}

// grantedBefore is what an attempt keeps of the last one's while Prometheus does not answer. Jumping back to the full request
// could leave a job waiting that fitted before, and taking back a raise would have it killed again.
func (s *sizer) grantedBefore(before *v1beta1.SizedResource) int64 {
	if before == nil || s.rules.Before.Mode != v1beta1.SizingEnforce {
		return s.requested
	}
	last := wholeAmount(before.Sized, s.resource)
	if s.resource == Memory && last > wholeAmount(before.Requested, s.resource) {
		return min(last, s.mostMemory())
	}
	return min(s.requested, last)
}

// sizedBefore is what the last attempt was granted; nil for none.
func (s *sizer) sizedBefore() *v1beta1.SizedResource {
	if s.rules.Before == nil {
		return nil
	}
	all := s.rules.Before.Resources
	i := slices.IndexFunc(all, func(r v1beta1.SizedResource) bool {
		return r.Role == string(s.part.Role) && r.Container == s.part.Container && r.Resource == s.resource
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

func (s *sizer) windowLength() time.Duration {
	return time.Duration(s.h.WindowDays) * day * time.Second
}

// tierFloor is the least amount of a resource to which the tier lets a request be cut.
func tierFloor(name string, rule config.Sizing) int64 {
	least := rule.MinCPU
	if name == Memory {
		least = rule.MinMemory
	}
	q, err := resource.ParseQuantity(least)
	if err != nil {
		return 0
	}
	return wholeAmount(q, name)
}
