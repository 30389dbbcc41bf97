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
	// times is how many reconciles took how long.
	times spread
}

// since is what was counted after another time.
func (f figures) since(before figures) figures {
	return figures{
		reconciles: f.reconciles - before.reconciles, took: f.took - before.took, waited: f.waited - before.waited,
		changes: f.changes - before.changes, cpu: f.cpu - before.cpu, times: f.times.since(before.times),
	}
}

// reconcile is how long one took on average, and wait how long a change waited for its own, in milliseconds.
func (f figures) reconcile() float64 { return 1000 * f.took / f.reconciles }
func (f figures) wait() float64      { return 1000 * f.waited / f.changes }

// half is how long the faster half of the reconciles took at most, and most how long nine tenths of them did, in milliseconds.
func (f figures) half() float64 { return f.times.within(0.5) }
func (f figures) most() float64 { return f.times.within(0.9) }

// scrape reads what the operator has counted, as Prometheus does.
func (s *stage) scrape(ctx context.Context) (figures, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.served+"/metrics", http.NoBody)
	if err != nil {
		return figures{}, err
	}
	request.Header.Set("Authorization", "Bearer "+s.scraper)
	// The text has the coarse buckets only, whose smallest holds most reconciles.
	request.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
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
	return figuresOf(expfmt.NewDecoder(response.Body, expfmt.ResponseFormat(response.Header)))
}

// figuresOf reads metrics.
func figuresOf(metrics expfmt.Decoder) (figures, error) {
	families := map[string]*dto.MetricFamily{}
	for {
		family := &dto.MetricFamily{}
		err := metrics.Decode(family)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return figures{}, fmt.Errorf("read metrics: %w", err)
		}
		families[family.GetName()] = family
	}
	took := histogram(families["controller_runtime_reconcile_time_seconds"])
	waited := histogram(families["workqueue_queue_duration_seconds"])
	f := figures{
		reconciles: float64(took.GetSampleCount()), took: took.GetSampleSum(),
		changes: float64(waited.GetSampleCount()), waited: waited.GetSampleSum(),
		times: spreadOf(took),
	}
	for _, m := range families["process_cpu_seconds_total"].GetMetric() {
		f.cpu += m.GetCounter().GetValue()
	}
	if f.reconciles == 0 || f.changes == 0 || f.cpu == 0 || len(f.times.buckets) == 0 {
		return f, fmt.Errorf(
			"the operator does not tell of its reconciles, how long each took, their queue or its processor time: %+v", f)
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
