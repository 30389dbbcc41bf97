package sizing

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Memory that is short ends a run, so what is known of a need is never forgotten, and three things tell it:
//
//	a kill     the need is above the limit of then. As far back as the ledger has kills, the container gets a fifth more.
//	a peak     above the limit of the template. It is only seen where the limit had been raised, and proves that it must stay so.
//	no more    after a kill at the limit of the template nothing says how much is enough. The container gets twice its request
//	           until a run with room shows its need. So a steady need costs one kill: a fifth more each time would cost several.
//
// No request is more than twice that of its template, or than the most of its tier: a leak would else grow its pod at every
// start, and a pod that fits on no node waits for ever.

// killedAt is the highest limit, in bytes, at which the container ran out of memory, also before the window; 0 for none.
func (s *sizer) killedAt() int64 { return max(s.h.Usage[s.part].OOMLimit, s.h.Killed[s.part]) }

// killedAtLimit tells whether the container ran out of memory with at least the limit of its template.
func (s *sizer) killedAtLimit() bool { return s.limit > 0 && s.killedAt()*100 >= s.limit*nearly }

// showsNeed tells whether the container, with room above it, used what it had been killed for. Its peak is its need then.
func (s *sizer) showsNeed() bool {
	return s.killedAt() > 0 && s.h.Usage[s.part].MemoryPeak >= s.killedAt()
}

// outgrows tells whether the container used more than the limit of its template allows. Up to that limit, a peak close to it
// shows nothing, because the kernel takes back file pages before it kills.
func (s *sizer) outgrows() bool {
	u := s.h.Usage[s.part]
	return s.limit > 0 && (u.MemoryPeak*100 >= s.limit*nearly || u.MemoryHeld > s.limit)
}

// raisedRequest is the request of a container that ran out of memory, and was not seen with enough of it since: at least that of
// its template. Its limit keeps its ratio to the request, so it rises with it.
func (s *sizer) raisedRequest() int64 {
	switch {
	case s.killedAtLimit():
		return s.requestFor(math.MaxInt64)
	case s.killedAt() > 0:
		return max(s.requestFor(afterKill(s.killedAt())), s.requested)
	}
	return s.requested
}

// knownNeed is the request that holds what the container is known to need, whatever the window says besides; 0 for nothing known.
func (s *sizer) knownNeed(e Estimate) int64 {
	need := int64(0)
	if s.killedAt() > 0 {
		need = afterKill(s.killedAt())
	}
	switch {
	case s.outgrows():
		need = max(need, e.withMargins(Memory))
	case s.killedAtLimit() && !s.showsNeed() && e.Reason != v1beta1.SizedByUse:
		need = math.MaxInt64
	}
	return s.requestFor(need)
}

// afterKill is the limit to try after a kill at another: a fifth more, and 100 MiB at least, as Vertical Pod Autoscaler guesses.
func afterKill(limit int64) int64 { return max(limit/100*oomPercent, limit+oomBytes) }

// requestFor is the request with which the limit is so many bytes, within the bounds of what may be granted; 0 without a limit.
func (s *sizer) requestFor(limit int64) int64 {
	if s.limit <= 0 || limit <= 0 {
		return 0
	}
	most := s.mostMemory()
	wanted := math.Ceil(float64(s.requested) * float64(limit) / float64(s.limit))
	if wanted >= float64(most) {
		return most
	}
	return min((int64(wanted)+mib-1)/mib*mib, most)
}

// mostMemory is the largest request: twice that of the template, and the most of the tier, but never less than was asked.
func (s *sizer) mostMemory() int64 {
	most := 2 * s.requested
	if q, err := resource.ParseQuantity(s.rules.Tier.Sizing.MaxMemory); err == nil && q.Sign() > 0 {
		most = min(most, q.Value())
	}
	return max(most, s.requested)
}

// explainKill explains a raise or a full request by kills in the window.
func (s *sizer) explainKill(e Estimate, granted int64) string {
	u := s.h.Usage[s.part]
	said := "A container with less memory than its template requests ran out of memory"
	if u.OOMKills > 0 {
		said = fmt.Sprintf("%s out of memory in the last %s, at a limit of %s", formatTimes(u.OOMKills), formatWindow(e.WindowDays),
			FormatAmount(u.OOMLimit, Memory))
	}
	switch {
	case granted <= s.requested:
		return said + ". It gets its full request."
	case s.killedAtLimit():
		return said + ". It gets twice its request, or the most of its tier, until a run with room shows what it needs."
	}
	return said + ". It gets a fifth more than then, at least 100Mi, and at most twice the request."
}

// explainNeed explains a request that is more than the window alone would have it.
func (s *sizer) explainNeed(e Estimate) string {
	killed := fmt.Sprintf("It ran out of memory at a limit of %s before", FormatAmount(s.killedAt(), Memory))
	switch {
	case s.outgrows():
		return e.DescribeFormula(Memory) +
			". That is more than the limit of the template, so it gets that, and at most twice the request."
	case e.Reason != v1beta1.SizedByUse:
		return e.DescribeUse(Memory) + " " + killed + ", so it gets more than its template asks for, and at most twice of it."
	}
	return e.DescribeUse(Memory) + " " + killed + ", so it gets at least a fifth more than then, and at most twice the request."
}
