package ledger

const secondsOfDay = 24 * 60 * 60

// state of a day of a pod.
type state int64

const (
	// passed: the stay went on after this day.
	passed state = iota
	// running: the last day so far of a stay that was not seen to end.
	running
	// ended: the last day of a stay that has ended.
	ended
)

// podDay is the time of a pod on one day.
type podDay struct {
	uid        string
	day        int64
	begin, end int64
	state      state
	outcome    Outcome
	uncertain  bool
	series     int64
	name       string
	node       string
	run        string
	resources  string
}

// span is a part of one day. A span of no length is of the day that it begins on.
type span struct{ day, begin, end int64 }

// splitAtMidnights cuts a time at midnights. What does not end after it begins is one span of no length.
func splitAtMidnights(begin, end int64) []span {
	last := begin / secondsOfDay
	// A time that ends at midnight belongs to the day before, not to a day of no length after it.
	if end > begin {
		last = (end - 1) / secondsOfDay
	}
	end = max(begin, end)
	var spans []span
	for day := begin / secondsOfDay; day <= last; day++ {
		spans = append(spans, span{day, max(begin, day*secondsOfDay), min(end, (day+1)*secondsOfDay)})
	}
	return spans
}

// sighting is what a stay adds to the days of its pod.
type sighting struct {
	podDay // with the first begin, the last end, and what new days are like
	final  bool
}

// extendDays returns the days of a pod after a sighting of it, given those before: all of them, or the last ones, which begin
// at a midnight. Days only grow, until one is final; the end that is known for good may be earlier than what was written,
// when a clock was ahead, and days after it are gone.
func extendDays(days []podDay, s sighting) []podDay {
	begin, end := s.begin, s.end
	if len(days) > 0 {
		last := days[len(days)-1]
		// An end that is final stays, and a sighting that is older than the last one adds nothing. So entries may be recorded
		// twice and in any order.
		if last.state == ended || !s.final && s.end <= last.end {
			return days
		}
		begin = days[0].begin
	}
	spans := splitAtMidnights(begin, end)
	next := make([]podDay, len(spans))
	for i, span := range spans {
		// A recorded day keeps its description, because sums were made of it.
		next[i] = s.podDay
		if i < len(days) {
			next[i] = days[i]
		}
		d := &next[i]
		d.day, d.begin, d.end = span.day, span.begin, span.end
		d.state, d.outcome, d.uncertain = passed, "", false
	}
	last := &next[len(next)-1]
	last.state = running
	if s.final {
		last.state, last.outcome, last.uncertain = ended, s.outcome, s.uncertain
	}
	return next
}

// needsAll says that the days before those that were loaded matter for a sighting: it may end among them.
func needsAll(days []podDay, s sighting) bool {
	return len(days) > 0 && s.final && days[0].begin%secondsOfDay == 0 && s.end <= days[0].begin
}

// amountSum is what a day of a series has of a resource.
type amountSum struct{ amountSeconds, podSeconds, uncertainSeconds int64 }

// cell is where amounts are summed.
type cell struct {
	day, series int64
	resource    string
}

// addAmounts adds the amounts of a day of a pod, or takes them away with sign -1.
func (d podDay) addAmounts(sums map[cell]amountSum, resources Resources, sign int64) {
	seconds := sign * (d.end - d.begin)
	if seconds == 0 {
		return
	}
	for resource, amount := range resources {
		c := cell{d.day, d.series, resource}
		sum := sums[c]
		sum.amountSeconds += amount * seconds
		sum.podSeconds += seconds
		if d.uncertain {
			sum.uncertainSeconds += seconds
		}
		sums[c] = sum
	}
}
