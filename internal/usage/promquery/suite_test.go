package promquery

import (
	"fmt"
	"math"
	"time"

	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// day is the day of the tests, and tomorrow when all of it has passed.
var (
	day      = time.Date(2026, time.November, 3, 0, 0, 0, 0, time.UTC)
	tomorrow = day.Add(24 * time.Hour)
)

// at is a time of the day.
func at(hour, minute int) time.Time {
	return day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
}

// stay of a worker of task ctr that lasts.
func stay(pod string, begin time.Time) Stay {
	return Stay{Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr", Pod: pod, Role: sizing.Worker, Begin: begin}
}

func (s Stay) of(task string) Stay {
	s.Task = task
	return s
}

func (s Stay) until(end time.Time) Stay {
	s.End, s.Final = end, true
	return s
}

// master of a run that ended well, or not.
func (s Stay) master(run string, well bool) Stay {
	s.Role, s.Run, s.Well = sizing.Master, run, well
	return s
}

func (s Stay) holds(thousandths int64) Stay {
	s.Accelerators = thousandths
	return s
}

// train is the key of container train of that role of task ctr.
func train(role sizing.Role) sizing.Key {
	return sizing.Key{Namespace: "ads", Kind: "ElasticTrainingJob", Task: "ctr", Role: role, Container: "train"}
}

// whole is the key of pods of workers of task ctr as a whole.
func whole() sizing.Key {
	key := train(sizing.Worker)
	key.Container = ""
	return key
}

// series of container train from a time on, a value for each five minutes.
func series(pod string, from time.Time, values ...float64) Series {
	s := Series{Pod: pod, Container: "train"}
	for i, value := range values {
		s.Points = append(s.Points, Point{from.Add(time.Duration(i+1) * slotLength), value})
	}
	return s
}

// partOf is a series of a device, or of a container's id.
func (s Series) partOf(container, part string) Series {
	s.Container, s.Part = container, part
	return s
}

// always is n values.
func always(value float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = value
	}
	return values
}

// histogram of samples.
func histogram(samples ...float64) sizing.Histogram {
	var h sizing.Histogram
	for _, s := range samples {
		h.Add(s, 1)
	}
	return h
}

// unknown is an unknown value.
var unknown = math.NaN()

// folded is the usage of the whole day after one batch of all pods.
func folded(answers Answers, stays ...Stay) map[sizing.Key]sizing.Usage {
	return foldedAt(tomorrow, answers, stays...)
}

func foldedAt(now time.Time, answers Answers, stays ...Stay) map[sizing.Key]sizing.Usage {
	d := NewDay(day, stays, now)
	for _, b := range d.PendingBatches() {
		d.FoldAnswers(b, answers)
	}
	return d.UsageByKey()
}

// names are n names of pods.
func names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("ctr-%04d", i)
	}
	return names
}
