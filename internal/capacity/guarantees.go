package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// namedGuarantees is how many queues are named that hold a gang back.
const namedGuarantees = 3

// sayGuarantees names the guarantees of other queues that keep a gang out of what its queue may take, the largest first; empty if
// the queue's own capability does. left is what the queue may still take.
func (qs *quotas) sayGuarantees(g *Gang, left Amounts) string {
	own, asks := qs.queues[g.Queue], g.requestsOf(g.Workers)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(left)) {
		byOthers := qs.guaranteed[name] - own.Guarantee[name]
		capability, limited := own.Capability[name]
		if asks[name] <= left[name] || byOthers <= 0 || limited && capability <= qs.total[name]-byOthers {
			continue
		}
		var holding []Queue
		for _, q := range qs.queues {
			if q.Name != g.Queue && q.Guarantee[name] > 0 {
				holding = append(holding, q)
			}
		}
		slices.SortFunc(holding, func(a, b Queue) int {
			return cmp.Or(cmp.Compare(b.Guarantee[name], a.Guarantee[name]), cmp.Compare(a.Name, b.Name))
		})
		for _, q := range holding[:min(len(holding), namedGuarantees)] {
			words = append(words, fmt.Sprintf("%s: %s %s", q.Name, FormatQuantity(name, q.Guarantee[name]), name))
		}
		if more := len(holding) - namedGuarantees; more > 0 {
			words = append(words, fmt.Sprintf("%d more queues", more))
		}
	}
	return strings.Join(words, ", ")
}

// limiting says what bounds the gang's queue.
func (a *Answer) limiting() string {
	if a.Guarantees != "" {
		return "What is guaranteed to other queues (" + a.Guarantees + ")"
	}
	return "The limit of its Queue"
}
