package main

import (
	"math"
	"time"
)

const (
	// scaling is the exponent of speed: 68 % of efficiency at 512 GPUs are 512 to the power of it, less one.
	scaling = 0.938
	// pause is how long a training makes no progress after its start, and after each change of its size.
	pause = time.Minute
	// checkpointEvery is the time that trains between two checkpoints.
	checkpointEvery = 10 * time.Minute
)

// speed is how fast so many GPUs train, as a multiple of as many as were asked for.
func speed(gpus, asked int32) float64 {
	return math.Pow(float64(gpus)/float64(asked), scaling)
}

// progress is what a training has done. Its workers have one GPU each.
type progress struct {
	asked int32
	// size is how many workers train together; 0 for none. since is since when.
	size    int32
	since   time.Duration
	started bool
	// first is true until the size changes for the first time.
	first bool
	// left is the time that the rest takes on as many GPUs as were asked for, as of the last checkpoint before since.
	left time.Duration
	// lost is the GPU-time of pauses after changes of size, and of steps that were done again.
	lost time.Duration
}

// trained is for how long the workers have made progress since they met.
func (p *progress) trained(now time.Duration) time.Duration {
	if p.size == 0 {
		return 0
	}
	return max(0, now-p.since-pause)
}

// leftAt is what is left to do.
func (p *progress) leftAt(now time.Duration) time.Duration {
	return max(0, p.left-p.worth(p.trained(now)))
}

// worth is how much of what is left the workers do in a time.
func (p *progress) worth(d time.Duration) time.Duration {
	if p.size == 0 {
		return 0
	}
	return time.Duration(float64(d) * speed(p.size, p.asked))
}

// ends is when the training ends if its size stays; false while it stands still.
func (p *progress) ends() (time.Duration, bool) {
	if p.size == 0 {
		return 0, false
	}
	return p.since + pause + time.Duration(math.Ceil(float64(p.left)/speed(p.size, p.asked))), true
}

// resize has other workers train together from now on, which go back to the last checkpoint.
func (p *progress) resize(now time.Duration, size int32) {
	if size == p.size {
		return
	}
	if p.size > 0 {
		trained := p.trained(now)
		kept := trained.Truncate(checkpointEvery)
		p.left -= p.worth(kept)
		p.lost += time.Duration(p.size) * (trained - kept)
		if !p.first {
			p.lost += time.Duration(p.size) * min(pause, now-p.since)
		}
		p.first = false
	} else if !p.started {
		p.started, p.first = true, true
	}
	p.size, p.since = size, now
}

// end adds what the last change of size cost, once the training has ended or the run is over.
func (p *progress) end(now time.Duration) {
	if p.size > 0 && !p.first {
		p.lost += time.Duration(p.size) * min(pause, now-p.since)
	}
}
