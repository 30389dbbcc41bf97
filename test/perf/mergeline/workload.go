package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"
)

// model is a model that must stay fresh.
type model struct {
	// machines that a merge takes, and typical is the median of how long it runs.
	machines int32
	typical  time.Duration
	spread   float64 // of the logarithm of that
	// interval is the age at which it is merged again; at lateFactor of it the alert says that it is late.
	interval time.Duration
	tier     string
	firstAge time.Duration
}

const (
	lateFactor = 1.5
	// large merges take so many machines at least.
	large = 8
)

// workload is what there is to merge.
type workload struct {
	seed   uint64
	models []model
	// runs is how long a model's merge runs; nil: drawn from what is typical of the model.
	runs func(model, number int) time.Duration
	// lasts is when it all ends, and places how long a gang takes to be placed; horizon and placing if 0.
	lasts, places time.Duration
}

func (w *workload) over() time.Time { return morning.Add(cmp.Or(w.lasts, horizon)) }

func (w *workload) placing() time.Duration { return cmp.Or(w.places, placing) }

// drawWorkload draws 60 models with sizes, durations, intervals and tiers that differ. At the beginning all are nearly due.
func drawWorkload(seed uint64) workload {
	c := rand.New(rand.NewPCG(seed, 26))
	w := workload{seed: seed}
	for range 60 {
		interval := time.Duration(pick(c, 4, 6, 8, 12, 24)) * time.Hour
		w.models = append(w.models, model{
			machines: int32(pick(c, 1, 1, 2, 2, 3, 4, 4, 6, 8, 12, 16)), interval: interval, spread: 0.3,
			typical: time.Duration(600 * math.Exp(c.Float64()*math.Log(6)) * float64(time.Second)), // 10 to 60 minutes
			tier:    []string{"exploratory", "exploratory", "small-traffic", "main-traffic"}[c.IntN(4)], firstAge: interval * 19 / 20,
		})
	}
	return w
}

// twoLarge are two models whose merges each take the whole pool, and small ones: what goes ahead of them costs them most.
func twoLarge(seed uint64) workload {
	c := rand.New(rand.NewPCG(seed, 27))
	w := workload{seed: seed}
	for i := range 20 {
		m := model{
			machines: int32(pick(c, 1, 2, 4)), interval: time.Duration(pick(c, 4, 8, 12)) * time.Hour, spread: 0.3,
			typical: time.Duration(600 * math.Exp(c.Float64()*math.Log(6)) * float64(time.Second)), tier: "small-traffic",
		}
		if i < 2 {
			m.machines, m.interval, m.typical = 16, 8*time.Hour, 40*time.Minute
		}
		m.firstAge = m.interval * 19 / 20
		w.models = append(w.models, m)
	}
	return w
}

func pick(c *rand.Rand, from ...int) int { return from[c.IntN(len(from))] }

// longest keeps merges within the default of runTimeoutSeconds.
const longest = 115 * time.Minute

// duration is how long a model's merge runs once all its machines work, whoever starts it and whatever the pool.
func (w *workload) duration(model, number int) time.Duration {
	if w.runs != nil {
		return w.runs(model, number)
	}
	m := &w.models[model]
	c := rand.New(rand.NewPCG(w.seed, uint64(model)<<32|uint64(number)))
	return min(time.Duration(m.typical.Seconds()*math.Exp(m.spread*c.NormFloat64()))*time.Second, longest)
}

// bound is how many machines are busy if merges never wait for one another, and every model is merged just before it is late.
func (w *workload) bound() float64 {
	sum := 0.0
	for i := range w.models {
		m := &w.models[i]
		mean := (m.typical + starting).Seconds() * math.Exp(m.spread*m.spread/2)
		sum += float64(m.machines) * mean / (lateFactor * m.interval.Seconds())
	}
	return sum
}

// pool is how many machines are so many times the bound, and as many as the largest merge takes at least.
func (w *workload) pool(times float64) int32 {
	most := int32(math.Ceil(times * w.bound()))
	for i := range w.models {
		most = max(most, w.models[i].machines)
	}
	return most
}
