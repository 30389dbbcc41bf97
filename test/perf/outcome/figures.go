package main

import (
	"slices"
	"time"
)

// sums are GPU-time and counts of the measured time.
type sums struct {
	held, partly, free float64
	teams              map[string]float64
	evictions, changes int
	sessions           int
}

func newSums() sums { return sums{teams: map[string]float64{}} }

func (s *sums) evicted(now time.Duration) {
	if now >= warmUp {
		s.evictions++
	}
}

func (s *sums) changed(now time.Duration) {
	if now >= warmUp {
		s.changes++
	}
}

// pass has time go by.
func (c *cluster) pass(to time.Duration) {
	d := (to - c.now).Seconds()
	if c.now >= warmUp && d > 0 {
		for i := range nodes {
			taken, size := c.taken[nodeName(i)], nodeSize(i)
			c.sums.held += d * float64(taken)
			c.sums.free += d * float64(size-taken)
			if taken > 0 {
				c.sums.partly += d * float64(size-taken)
			}
		}
		for _, r := range c.runs {
			for _, p := range r.pods {
				if p.Spec.NodeName != "" {
					c.sums.teams[r.team] += d
				}
			}
		}
	}
	c.now = max(c.now, to)
}

// beginMeasure notes what is left to do when the measured time begins.
func (c *cluster) beginMeasure() {
	for _, r := range c.all {
		r.before, r.lost = r.leftNow(c.now), 0
	}
}

// figures are those of one run: shares of 0 to 1, seconds, and counts a day.
type figures struct {
	Allocation, Goodput, Lost, Fragmentation float64
	// WaitP50 and WaitP99 are of jobs of one GPU, and of several.
	WaitP50, WaitP99         [2]float64
	EvictionsDay, ChangesDay float64
	// Fairness is Jain's index of what teams received over the lesser of what they deserve and what they offered.
	Fairness float64
	Sessions int
	Took     time.Duration
}

func (c *cluster) figures(days int, offers map[string]float64) figures {
	window := (time.Duration(days)*day - warmUp).Seconds()
	f := figures{
		Allocation: c.sums.held / (gpusOfCluster * window), EvictionsDay: float64(c.sums.evictions) * 86400 / window,
		ChangesDay: float64(c.sums.changes) * 86400 / window, Sessions: c.sums.sessions,
	}
	if c.sums.free > 0 {
		f.Fragmentation = c.sums.partly / c.sums.free
	}
	good, lost := 0.0, 0.0
	var waits [2][]float64
	for _, r := range c.all {
		if !r.over {
			r.end(c.now)
		}
		from := r.before
		if from < 0 {
			from = r.work
			class, until := 0, r.starts
			if r.job.asked > 1 {
				class = 1
			}
			if until < 0 {
				until = c.now
			}
			waits[class] = append(waits[class], (until - r.comes).Seconds())
		}
		good += float64(r.job.asked) * (from - r.leftNow(c.now)).Seconds()
		lost += r.lost.Seconds()
	}
	f.Goodput = good / (gpusOfCluster * window)
	if c.sums.held > 0 {
		f.Lost = lost / c.sums.held
	}
	for class, all := range waits {
		slices.Sort(all)
		if n := len(all); n > 0 {
			f.WaitP50[class], f.WaitP99[class] = all[n/2], all[n*99/100]
		}
	}
	f.Fairness = jain(c.sums.teams, offers, window)
	return f
}

// jain is Jain's index over the teams that offered anything: 1 where all received the same part, less where some received more.
func jain(received, offers map[string]float64, window float64) float64 {
	n, sum, squares := 0.0, 0.0, 0.0
	for team, offer := range offers {
		if offer > 0 {
			x := received[team] / (offer * gpusOfCluster * window)
			n, sum, squares = n+1, sum+x, squares+x*x
		}
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (n * squares)
}
