package arbiter

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/training/growth"
)

// judgeGrowers writes into verdicts how far jobs may grow, and since when they could. After a restart of the operator they wait
// anew.
func (a *Arbiter) judgeGrowers(
	model *capacity.Model, growers []capacity.Grower, limits map[types.NamespacedName]int32, jobs verdicts, now time.Time,
) {
	rooms := make(map[types.NamespacedName]growth.Room, len(growers))
	for i := range growers {
		g := &growers[i]
		room := a.rooms[g.Job].Follow(limits[g.Job]-g.Placed, g.Placed, now)
		rooms[g.Job] = room
		jobs[g.Job] = capacity.Verdict{SurplusLimit: limits[g.Job], Unjudged: !g.IsJudgedBy(model), RoomSince: room.Since}
	}
	a.rooms = rooms
}
