package elastictrainingjob

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
)

// What trainings say of their steps, for Prometheus (docs/metrics.md). The operator that reconciles has it alone. Here jobs are
// labels, because only those with spec.progress are listed, and each for as long as it exists and has not ended.
var (
	heldDesc = trainingDesc("tideline_training_gpu_seconds_total",
		"Time that GPUs were held by ready workers of jobs with spec.progress, in GPU-seconds.", "queue")
	keptDesc = trainingDesc("tideline_training_kept_gpu_seconds_total",
		"The part of it that led to steps which a checkpoint has.", "queue")
	lostDesc = trainingDesc("tideline_training_lost_gpu_seconds_total",
		"The part of it that led to steps which were lost, because the training went on at an earlier one.", "queue")

	goodputDesc = trainingDesc("tideline_training_goodput_ratio",
		"Share of the job's GPU time that led to steps which a checkpoint has.", jobLabels...)
	progressDesc = trainingDesc("tideline_training_progress_ratio", "Steps taken, of those to take.", jobLabels...)
	rateDesc     = trainingDesc("tideline_training_steps_per_second", "Usual pace of the training.", jobLabels...)
	leftDesc     = trainingDesc("tideline_training_left_seconds", "Time that is left at the usual pace.", jobLabels...)
	slownessDesc = trainingDesc("tideline_training_straggler_slowness",
		"How many times as long as the median worker the slowest takes for its part of a step, while all others wait for it.",
		jobLabels...)
	stalledDesc = trainingDesc("tideline_training_stalled", "1 while the training takes no steps, else 0.", jobLabels...)
)

var jobLabels = []string{"namespace", "name", "queue"}

func trainingDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (*trainings) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		heldDesc, keptDesc, lostDesc, goodputDesc, progressDesc, rateDesc, leftDesc, slownessDesc, stalledDesc,
	} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (t *trainings) Collect(to chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queues := maps.Clone(t.gone)
	now := t.now()
	for _, f := range t.jobs {
		totals := f.meter.Account.ReadTotals(now)
		queues[f.queue] = queues[f.queue].AddTotals(totals)
		gauge := func(desc *prometheus.Desc, value float64) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, f.job.Namespace, f.job.Name, f.queue)
		}
		if totals.Held > 0 {
			gauge(goodputDesc, totals.Kept/totals.Held)
		}
		figures, known := f.meter.ReadFigures(f.factor, now)
		if !known || f.pod == "" {
			continue // It does not run, or has said nothing.
		}
		stalled := 0.0
		if figures.Stall != nil {
			stalled = 1
		}
		gauge(stalledDesc, stalled)
		if figures.Straggler != nil {
			gauge(slownessDesc, figures.Straggler.Slowness)
		}
		if figures.Total > 0 {
			gauge(progressDesc, float64(figures.Step)/float64(figures.Total))
		}
		if figures.StepTime > 0 {
			gauge(rateDesc, 1/figures.StepTime.Seconds())
			gauge(leftDesc, figures.TimeLeft().Seconds())
		}
	}
	for queue, totals := range queues {
		for desc, value := range map[*prometheus.Desc]float64{heldDesc: totals.Held, keptDesc: totals.Kept, lostDesc: totals.Lost} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, queue)
		}
	}
}
