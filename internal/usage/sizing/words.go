package sizing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// explainSizing explains the result with its figures.
func (s *sizer) explainSizing(e Estimate, sized v1beta1.SizedResource) string {
	switch sized.Reason {
	case v1beta1.SizedByUse:
		if wholeAmount(sized.Sized, s.resource) > e.Cap {
			return fmt.Sprintf("%s; tier %s does not cut below %s.", e.DescribeFormula(s.resource), s.rules.Tier.Name,
				sized.Sized.String())
		}
		return e.DescribeFormula(s.resource) + "."
	case v1beta1.SizedFits:
		return e.DescribeFormula(s.resource) + ", not less than the request."
	case v1beta1.SizedHeld, v1beta1.SizedByHistory:
		return e.DescribeUse(s.resource)
	case v1beta1.SizedByMetrics:
		return s.h.Unavailable
	}
	return s.explainKill(e, wholeAmount(sized.Sized, Memory))
}

// DescribeUse explains a cap, or why there is no cap.
func (e Estimate) DescribeUse(resource string) string {
	switch {
	case e.Reason == v1beta1.SizedByUse:
		return e.DescribeFormula(resource) + "."
	case e.Reason == v1beta1.SizedHeld && resource == CPU:
		return "The container ran at its CPU limit so often that its need is unknown. Raise the limit, or leave it out."
	case e.Reason == v1beta1.SizedHeld:
		return fmt.Sprintf("Its memory peaked at %s, close to its limit, so its need is unknown. Raise the limit, "+
			"or leave it out.", FormatAmount(e.Used, resource))
	case e.Coverage < enoughCoverage:
		return fmt.Sprintf("Metrics cover %d %% of the time that the task ran in the last %s; sizing needs %d %%.", e.Coverage,
			formatWindow(e.WindowDays), enoughCoverage)
	}
	return fmt.Sprintf("The history covers %s of the last %s; sizing needs at least one day.", formatDays(e.Days),
		formatWindow(e.WindowDays))
}

// DescribeFormula is the computation of a cap, in figures, also of one that nothing is cut to.
func (e Estimate) DescribeFormula(resource string) string {
	what := "peak memory"
	if resource == CPU {
		what = "processors in use"
	}
	said := fmt.Sprintf("%s %s over %s of %s × %s", FormatAmount(e.Used, resource), what, formatTenths(e.Days),
		formatWindow(e.WindowDays),
		formatDecimal(float64(e.BufferPercent)/100))
	if e.Wider > 1.0005 {
		said += " × " + formatDecimal(e.Wider) + " for a short history"
	}
	if e.Growth > 1.0005 {
		said += " × " + formatDecimal(e.Growth) + " for growth from day to day"
	}
	return said + " = " + FormatAmount(e.withMargins(resource), resource)
}

// FormatAmount writes an amount: processors to three digits, memory in the largest unit that keeps three digits.
func FormatAmount(amount int64, name string) string {
	if name == CPU {
		return formatDecimal(float64(amount) / 1000)
	}
	for _, unit := range []struct {
		name string
		size float64
	}{{"Ti", 1 << 40}, {"Gi", 1 << 30}} {
		if float64(amount) >= unit.size {
			return formatDecimal(float64(amount)/unit.size) + unit.name
		}
	}
	return formatDecimal(float64(amount)/mib) + "Mi"
}

// formatDecimal is a number to three digits.
func formatDecimal(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.*f", 2-int(math.Floor(math.Log10(max(x, 1)))), x), "0"), ".")
}

func formatDays(n float64) string {
	if said := formatTenths(n); said != "1" {
		return said + " days"
	}
	return "1 day"
}

func formatWindow(n int) string { return formatDays(float64(n)) }

// formatTenths is a number with one decimal.
func formatTenths(x float64) string {
	return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64)
}

func formatTimes(n int64) string {
	if n == 1 {
		return "One container ran"
	}
	return fmt.Sprintf("%d containers ran", n)
}

// summaryLine is the largest change of each resource, for `kubectl get`: "cpu 16→3.08, memory 64Gi→9.2Gi". It is in
// brackets if it is a recommendation only.
func summaryLine(st *v1beta1.SizingStatus) string {
	var parts []string
	for _, name := range []string{CPU, Memory} {
		changed := slices.DeleteFunc(slices.Clone(st.Resources), func(r v1beta1.SizedResource) bool {
			return r.Resource != name || r.Requested.Cmp(r.Sized) == 0
		})
		if len(changed) == 0 {
			continue
		}
		change := func(r v1beta1.SizedResource) int64 {
			return wholeAmount(r.Requested, name) - wholeAmount(r.Sized, name)
		}
		most := slices.MaxFunc(changed, func(a, b v1beta1.SizedResource) int { return cmp.Compare(change(a), change(b)) })
		parts = append(parts, fmt.Sprintf("%s %s→%s", name, amountWords(most.Requested, name), amountWords(most.Sized, name)))
	}
	said := strings.Join(parts, ", ")
	if said != "" && st.Mode == v1beta1.SizingRecommend {
		said = "(" + said + ")"
	}
	return said
}

func amountWords(q resource.Quantity, name string) string {
	return FormatAmount(wholeAmount(q, name), name)
}

const (
	// idleShare is the use of accelerators, in percent of the time, below which advice is given.
	idleShare = 30
	// anHour is how long a device must have been held, in seconds, before anything is advised.
	anHour = 60 * 60
)

// DescribeAccelerators says how the task used its accelerators. They are never cut: their number is the owner's choice.
func (h History) DescribeAccelerators() string {
	var u AcceleratorUsage
	for _, usage := range h.Usage {
		u = Usage{Accelerators: u}.Merge(usage).Accelerators
	}
	if u.HeldSeconds == 0 {
		return ""
	}
	share := u.ActiveMilliseconds / 10 / u.HeldSeconds
	the := "The"
	if !h.AsOf.IsZero() {
		the = fmt.Sprintf("As of %s, when Prometheus last answered: the", h.AsOf.UTC().Format(time.RFC3339))
	}
	said := fmt.Sprintf("%s accelerators were in use %d %% of the time that the task held them in the last %s", the, share,
		formatWindow(h.WindowDays))
	if u.MemoryPeakMiB > 0 {
		said += fmt.Sprintf(", with at most %s of memory on one", FormatAmount(u.MemoryPeakMiB*mib, Memory))
	}
	if share < idleShare && u.HeldSeconds >= anHour {
		return said + ". Use fewer workers, larger batches, more processors to load data, or a part of a shared accelerator."
	}
	return said + "."
}

// DescribeChange is the event about changed requests from one status to the next; empty for no change.
func DescribeChange(before, after *v1beta1.SizingStatus) string {
	if after == nil || after.Summary == "" || (before != nil && before.Summary == after.Summary) {
		return ""
	}
	may := "request"
	if after.Mode == v1beta1.SizingRecommend {
		may = "could request"
	}
	var changes []string
	for i := range after.Resources {
		if r := &after.Resources[i]; r.Requested.Cmp(r.Sized) != 0 {
			changes = append(changes, fmt.Sprintf("%s of %s %s %s instead of %s: %s", r.Container, r.Role, r.Resource,
				amountWords(r.Sized, r.Resource), amountWords(r.Requested, r.Resource), strings.TrimSuffix(r.Message, ".")))
		}
	}
	return fmt.Sprintf("By what was used, containers %s: %s.", may, strings.Join(changes, "; "))
}
