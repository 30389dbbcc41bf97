package elastictrainingjob

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
)

func TestFreeRoomInPiecesIsTold(t *testing.T) {
	g := NewWithT(t)
	elected := make(chan struct{})
	of := func(unusable float64) []capacity.Pieces {
		return []capacity.Pieces{{
			Queue: "ads", Device: capacity.Device{Resource: "nvidia.com/gpu", Label: "gpu", Model: "A100"},
			Fragmentation: capacity.Fragmentation{Free: 12, Unusable: unusable, Weight: 1},
		}}
	}
	p := collectPieces(func() arbiter.Pieces { return arbiter.Pieces{Now: of(1), Moved: of(0.25), Moves: 3} }, elected)
	g.Expect(testutil.CollectAndCount(p)).To(BeZero(), "who stands by tells nothing")
	close(elected)
	g.Expect(testutil.CollectAndCompare(p, strings.NewReader(`# HELP tideline_capacity_repack_moves `+
		`Surplus workers that would have to move to other nodes for the largest waiting gang that this helps.
# TYPE tideline_capacity_repack_moves gauge
tideline_capacity_repack_moves 3
# HELP tideline_capacity_unusable_ratio `+
		`Share of free accelerators that gangs which wait in a queue cannot use, now and after the moves that are advised.
# TYPE tideline_capacity_unusable_ratio gauge
tideline_capacity_unusable_ratio{model="A100",queue="ads",repacked="false",resource="nvidia.com/gpu"} 1
tideline_capacity_unusable_ratio{model="A100",queue="ads",repacked="true",resource="nvidia.com/gpu"} 0.25
`))).To(Succeed())
	problems, err := testutil.CollectAndLint(p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())

	page, err := os.ReadFile("../../docs/metrics.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(page)).To(And(
		ContainSubstring("| `tideline_capacity_unusable_ratio` | gauge | `queue`, `resource`, `model`, `repacked` |"),
		ContainSubstring("| `tideline_capacity_repack_moves` | gauge | |")))
}
