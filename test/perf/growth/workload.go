package main

import (
	"math/rand/v2"
	"time"
)

// The cluster and what runs on it. These figures were fixed before anything was run; see horizon for what was not.
const (
	nodes, devicesPerNode = 8, 8
	// Workers take startTime from their node until they are ready, and leaveTime from SIGTERM until they are gone.
	startTime, leaveTime = 10 * time.Second, 5 * time.Second
	// reportEvery is how often worker 0 reports progress.
	reportEvery = 30 * time.Second
)

// workload is what runs on the cluster.
type workload struct {
	// trainings of minimum to maximum workers with one device each run from the first to the last second.
	trainings        int
	minimum, maximum int32
	// rigidDevices are held on average by gangs of one size.
	rigidDevices int32
	// speeds draws how fast each training is with so many workers, in workers of its core; nil for as many as there are.
	speeds func(seed uint64) []speed
}

// speed is how fast a training is with so many workers, where each worker of its core is 1.
type speed func(workers int) float64

// alike has trainings whose speed is proportional to their workers. Half of what their minima leave is free for surplus.
var alike = workload{trainings: 2, minimum: 8, maximum: 32, rigidDevices: 24}

// The conditions that are tried, each with every subject and seed.
var (
	outages = []time.Duration{15 * time.Second, time.Minute, 3 * time.Minute}
	// changeEvery is the mean time between two changes of the room: a gang that comes or one that ends.
	changeEvery = []time.Duration{30 * time.Second, 2 * time.Minute, 8 * time.Minute, 32 * time.Minute}
	// seeds are not those that the rule was chosen by, which were 1 and 2.
	seeds = []uint64{101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116}
)

// horizon is how long a run lasts: a day at least, and else as long as two hundred changes take. The first try showed that
// trainings of the default tier end after three days, so no run is as long.
func horizon(every time.Duration) time.Duration {
	return min(max(24*time.Hour, 200*every), 60*time.Hour)
}

// rigid is a gang of one size that comes, waits until all of its workers are placed, and ends by itself.
type rigid struct {
	comes  time.Duration
	size   int32
	lasts  time.Duration
	number int
}

// drawRigid draws the gangs of a run. They come at random, independently of each other, and last for exponential times, so that
// rooms become free at random too; as many come as hold so many devices on average.
func drawRigid(devices int32, seed uint64, every time.Duration) []rigid {
	random := rand.New(rand.NewPCG(seed, uint64(every)))
	const meanSize = 0.4*1 + 0.3*2 + 0.2*4 + 0.1*8
	between := 2 * every // Each gang changes the room twice.
	mean := time.Duration(float64(between) * float64(devices) / meanSize)
	var all []rigid
	// The cluster begins as full as it will be on average: those that would be there have come at once.
	for held := int32(0); held < devices; {
		r := rigid{size: drawSize(random), lasts: drawTime(random, mean), number: len(all)}
		held += r.size
		all = append(all, r)
	}
	for at := drawTime(random, between); at < horizon(every); at += drawTime(random, between) {
		all = append(all, rigid{comes: at, size: drawSize(random), lasts: drawTime(random, mean), number: len(all)})
	}
	return all
}

func drawSize(random *rand.Rand) int32 {
	switch p := random.Float64(); {
	case p < 0.4:
		return 1
	case p < 0.7:
		return 2
	case p < 0.9:
		return 4
	}
	return 8
}

func drawTime(random *rand.Rand, mean time.Duration) time.Duration {
	return max(time.Second, time.Duration(random.ExpFloat64()*float64(mean)).Truncate(time.Second))
}
