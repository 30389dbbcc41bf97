package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// controller is the one whose reconciles are measured.
const controller = "elastictrainingjob"

// figures are what the operator has counted.
type figures struct {
	// reconciles of trainings, how long they took in all, and how long changes waited for theirs, in seconds.
	reconciles, took, waited float64
	// changes are those that waited.
	changes float64
	// cpu is the processor time of the operator, in seconds.
	cpu float64
}

// since is what was counted after another time.
func (f figures) since(before figures) figures {
	return figures{
		reconciles: f.reconciles - before.reconciles, took: f.took - before.took, waited: f.waited - before.waited,
		changes: f.changes - before.changes, cpu: f.cpu - before.cpu,
	}
}

// reconcile is how long one took on average, and wait how long a change waited for its own, in milliseconds.
func (f figures) reconcile() float64 { return 1000 * f.took / f.reconciles }
func (f figures) wait() float64      { return 1000 * f.waited / f.changes }

// scrape reads what the operator has counted, as Prometheus does.
func (s *stage) scrape(ctx context.Context) (figures, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.served+"/metrics", http.NoBody)
	if err != nil {
		return figures{}, err
	}
	request.Header.Set("Authorization", "Bearer "+s.scraper)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // The operator signs it itself.
	}}
	response, err := client.Do(request)
	if err != nil {
		return figures{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return figures{}, errors.New("read the operator's metrics: " + response.Status)
	}
	return figuresOf(response.Body)
}

// figuresOf reads metrics.
func figuresOf(metrics io.Reader) (figures, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return figures{}, fmt.Errorf("read metrics: %w", err)
	}
	took := histogram(families["controller_runtime_reconcile_time_seconds"])
	waited := histogram(families["workqueue_queue_duration_seconds"])
	f := figures{
		reconciles: float64(took.GetSampleCount()), took: took.GetSampleSum(),
		changes: float64(waited.GetSampleCount()), waited: waited.GetSampleSum(),
	}
	for _, m := range families["process_cpu_seconds_total"].GetMetric() {
		f.cpu += m.GetCounter().GetValue()
	}
	if f.reconciles == 0 || f.changes == 0 || f.cpu == 0 {
		return f, fmt.Errorf("the operator does not tell of its reconciles, their queue or its processor time: %+v", f)
	}
	return f, nil
}

// histogram is that of the controller of trainings.
func histogram(family *dto.MetricFamily) *dto.Histogram {
	for _, m := range family.GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "controller" && l.GetValue() == controller {
				return m.GetHistogram()
			}
		}
	}
	return nil
}
