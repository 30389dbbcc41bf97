package sizing

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// Resources that are sized.
const (
	CPU    = string(corev1.ResourceCPU)
	Memory = string(corev1.ResourceMemory)
)

// most is how many resources of containers a job says at most.
const most = 64

// Ask is what the pods of a role ask for.
type Ask struct {
	Role Role
	// Containers of the pod's template, with what the job overrides for the role.
	Containers []corev1.Container
}

// Rules are what sizing goes by.
type Rules struct {
	Mode v1alpha1.SizingMode
	// Tier of the job.
	Tier config.Tier
	// Before is what the job's last attempt was given; nil for the first.
	Before *v1alpha1.SizingStatus
}

// Size finds what use calls for, for each request of CPU and memory of each container. It never cuts what it does not know
// enough of, and never gives more than was requested, but after a container ran out of memory. It is nil where sizing is off.
func Size(asks []Ask, h History, r Rules, now time.Time) *v1alpha1.SizingStatus {
	if r.Mode == v1alpha1.SizingDisabled {
		return nil
	}
	st := &v1alpha1.SizingStatus{Mode: r.Mode, Time: metav1.NewTime(now.Truncate(time.Second))}
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
	st.Accelerators = h.Accelerators()
	return st
}

// requestAndLimit are what a container requests of a resource and its limit, in millicores or bytes; 0 for none. A limit stands
// in for a request that is missing, as the API server has it.
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

// toQuantity is an amount as people write it.
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

func (s *sizer) sizeResource() v1alpha1.SizedResource {
	rule := s.rules.Tier.Sizing
	e := s.h.Estimate(s.part, s.resource, rule)
	sized := v1alpha1.SizedResource{
		Role: string(s.part.Role), Container: s.part.Container, Resource: s.resource,
		Requested: toQuantity(s.requested, s.resource),
	}
	granted := s.requested
	before := s.sizedBefore()
	if before != nil && before.OOMKilledTime != nil && s.now.Sub(before.OOMKilledTime.Time) < s.windowLength() {
		sized.OOMKilledTime = before.OOMKilledTime
	}
	switch killed := s.resource == Memory && (s.h.Usage[s.part].OOMKills > 0 || sized.OOMKilledTime != nil); {
	case killed:
		sized.Reason = v1alpha1.SizedByOOM
		granted = s.raisedRequest(e)
	case s.h.Unavailable != "":
		sized.Reason = v1alpha1.SizedByMetrics
		if before != nil && s.rules.Before.Mode == v1alpha1.SizingEnforce {
			granted = min(granted, wholeAmount(before.Sized, s.resource))
		}
	case e.Reason != v1alpha1.SizedByUse:
		sized.Reason = e.Reason
	default:
		sized.Reason = v1alpha1.SizedByUse
		if granted = min(s.requested, max(e.Cap, tierFloor(s.resource, rule))); granted == s.requested {
			sized.Reason = v1alpha1.SizedFits
		}
	}
	sized.Sized = toQuantity(granted, s.resource)
	if granted == s.requested {
		sized.Sized = sized.Requested
	}
	sized.Message = s.explainSizing(e, sized)
	return sized
}

// sizedBefore is what the last attempt was given.
func (s *sizer) sizedBefore() *v1alpha1.SizedResource {
	if s.rules.Before == nil {
		return nil
	}
	all := s.rules.Before.Resources
	i := slices.IndexFunc(all, func(r v1alpha1.SizedResource) bool {
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

// tierFloor is what the tier cuts nothing of a resource below.
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

// killedAtLimit tells whether a container was killed at the limit that it would have now, or at a higher one.
func (s *sizer) killedAtLimit() bool { return s.h.Usage[s.part].OOMLimit*100 >= s.limit*nearly }

// raisedRequest is the request of a container that ran out of memory: not less than was asked, whatever it was given then,
// and what it may need, as Vertical Pod Autoscaler guesses that. If it was killed at the limit that it would have now, the
// tier's buffer comes on top, because it is a guess, and it is what its peak calls for at least. Its limit follows its
// request, so that it is the limit that is raised.
func (s *sizer) raisedRequest(e Estimate) int64 {
	killedAt := s.h.Usage[s.part].OOMLimit
	if s.limit <= 0 || killedAt <= 0 {
		return s.requested
	}
	enough := max(killedAt*oomPercent/100, killedAt+oomBytes)
	if s.killedAtLimit() {
		enough = max(enough*int64(e.BufferPercent)/100, e.withMargins(Memory))
	}
	if enough <= s.limit {
		return s.requested
	}
	granted := int64(math.Ceil(float64(s.requested) * float64(enough) / float64(s.limit)))
	granted = min((granted+mib-1)/mib*mib, 2*s.requested)
	if q, err := resource.ParseQuantity(s.rules.Tier.Sizing.MaxMemory); err == nil && q.Sign() > 0 {
		granted = min(granted, q.Value())
	}
	return max(granted, s.requested)
}
