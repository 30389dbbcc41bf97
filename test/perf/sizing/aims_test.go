package main

import (
	"testing"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// mostOver is how many points the median of what Tideline requests may be over the tier's own buffer.
const mostOver = 5

// The aims, by the seed of the page and three others: in each tier what Tideline requests is in the median at most mostOver
// points over the tier's own buffer, also of what it cuts, and at equal mean slack fewer of its runs are violated than of those
// of each rival: throttled often, or killed. They were written down, as the tasks were, before anything was run.
func TestAims(t *testing.T) {
	for seed := range uint64(seeds) {
		outcomes := playAll(seed+1, enough).outcomes
		for _, tier := range config.DefaultTiers() {
			v := compare(of(outcomes, tier.Name))
			if max(v.over.cpu, v.over.memory, v.cut.cpu, v.cut.memory) > mostOver {
				t.Errorf("seed %d, tier %s: the median is %+v points over the buffer, %+v of what is cut", seed+1, tier.Name, v.over, v.cut)
			}
			own := v.violated[tideline]
			for who := vpaTarget; who < contestants; who++ {
				if v.violated[who] <= own {
					t.Errorf("seed %d, tier %s: %d runs are violated, %d of %s", seed+1, tier.Name, own, v.violated[who], names[who])
				}
			}
		}
	}
}

// The same seed makes the same tables.
func TestTheTablesAreTheSameAgain(t *testing.T) {
	once, again := table([]played{playAll(5, 60)}), table([]played{playAll(5, 60)})
	if once != again {
		t.Error("the tables of one seed differ")
	}
}
