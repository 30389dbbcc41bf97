package main

import (
	"fmt"
	"testing"

	"github.com/tideline-io/tideline/internal/config"
)

// The aims, by a seed of the page and three others: in each tier what Tideline requests is in the median at most five points over
// the tier's own buffer, and at equal mean slack its runs are violated less often than those of each rival: throttled often, or
// killed. They were written down, as the tasks were, before anything was run.
func TestAims(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed+1), func(t *testing.T) {
			outcomes := playAll(seed+1, enough)
			for _, tier := range config.DefaultTiers() {
				some := of(outcomes, tier.Name)
				all := rivals(some, false)
				own := judge(some, all[tideline])
				if !own.closeTo(tier.Sizing) {
					t.Errorf("tier %s: the median is %+v points over the buffer", tier.Name, own.over(tier.Sizing))
				}
				for who := vpaTarget; who < contestants; who++ {
					if other := judge(some, all[who]); own.violated >= other.violated {
						t.Errorf("tier %s: %d runs are violated, %d of %s", tier.Name, own.violated, other.violated, names[who])
					}
				}
			}
		})
	}
}
