package cost

import (
	"math/bits"
	"time"

	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// billion is the unit of shares of time.
const billion = 1_000_000_000

// roleDay is a role of a task on a day of UTC.
type roleDay struct {
	// day is counted from 1970-01-01.
	day  int64
	role sizing.Key
}

func roleDayOf(at time.Time, role sizing.Key) roleDay {
	role.Container = ""
	return roleDay{at.Unix() / int64(wholeDay/time.Second), role}
}

// use is the mean use of each pod of a role on a day, over the time that such a pod existed. Time without metrics counts
// neither as used nor as seen. The zero value is a role without metrics.
type use struct {
	// cpuSeen, memorySeen and devicesSeen are the shares of the time with known use, and devicesActive the share in which
	// accelerators were in use, in billionths.
	cpuSeen, memorySeen, devicesSeen, devicesActive int64
	// microcores and bytes that all containers used.
	microcores, bytes int64
}

// usesOf sums what parts used by role and day.
func usesOf(used []Used) map[roleDay]use {
	uses := make(map[roleDay]use, len(used))
	for i := range used {
		of := roleDayOf(used[i].Day, used[i].Key)
		u := uses[of]
		u.add(used[i].Key.Container, &used[i].Usage)
		uses[of] = u
	}
	return uses
}

// add adds what a container used, or, without one, what accelerators did. It is known of a role for as long as it is of one of
// its containers.
func (u *use) add(container string, seen *sizing.Usage) {
	if seen.RunSeconds <= 0 || seen.SeenSeconds <= 0 {
		return
	}
	share := func(of int64) int64 { return proportion(of, min(seen.SeenSeconds, seen.RunSeconds), seen.RunSeconds) }
	if container == "" {
		if held := seen.Accelerators.HeldSeconds * 1000; held > 0 {
			u.devicesSeen = share(billion)
			u.devicesActive = proportion(u.devicesSeen, min(max(seen.Accelerators.ActiveMilliseconds, 0), held), held)
		}
		return
	}
	if millicores, known := seen.MeanCPU(); known {
		u.cpuSeen = max(u.cpuSeen, share(billion))
		u.microcores += share(millicores * 1000)
	}
	if bytes := max(seen.MemoryPeak, seen.MemoryHeld); bytes > 0 {
		u.memorySeen = max(u.memorySeen, share(billion))
		u.bytes += share(bytes)
	}
}

// proportion is amount × some ÷ all, rounded down. Some is not more than all, and none is negative.
func proportion(amount, some, all int64) int64 {
	high, low := bits.Mul64(uint64(amount), uint64(some))
	quotient, _ := bits.Div64(high, low, uint64(all))
	return int64(quotient)
}
