package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The programs of Prometheus.
const (
	prometheus = "prometheus"
	promtool   = "promtool"
)

// oneBlock makes promtool read a file once for each 20 days and not for each two
// hours: the blocks of a database are at most so long.
const oneBlock = "--max-block-duration=486h"

// A Prometheus answers questions about samples that were there before it started,
// and scrapes nothing. It belongs to no cluster.
type Prometheus struct {
	// URL of its HTTP API.
	URL string

	dir     string
	process *process
}

// StartPrometheus starts a Prometheus over what samples writes, which is text in
// the format of OpenMetrics with times, on the loopback interface. It is built the
// first time, unless Prometheus is on PATH. StartPrometheus returns when it
// answers; Stop ends it and removes what it wrote.
func StartPrometheus(ctx context.Context, log io.Writer, samples func(io.Writer) error) (_ *Prometheus, err error) {
	programs, err := prometheusPrograms(ctx, log)
	if err != nil {
		return nil, err
	}
	p := &Prometheus{}
	if p.dir, err = os.MkdirTemp("", "tideline-prometheus-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop())
		}
	}()
	data := filepath.Join(p.dir, "data")
	if err := p.backfill(ctx, programs.program(promtool), data, samples); err != nil {
		return nil, err
	}
	configuration := filepath.Join(p.dir, "prometheus.yml")
	if err := writeFile(configuration, []byte("global: {}\n"), 0o600); err != nil {
		return nil, err
	}
	return p, p.start(ctx, programs.program(prometheus), "--config.file="+configuration, "--storage.tsdb.path="+data,
		"--storage.tsdb.retention.time=10y", "--web.listen-address=")
}

// backfill makes blocks of samples.
func (p *Prometheus) backfill(ctx context.Context, program, data string, samples func(io.Writer) error) error {
	text, err := os.Create(filepath.Join(p.dir, "samples.om"))
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(text, 1<<20)
	if err := errors.Join(samples(buffered), buffered.Flush(), text.Close()); err != nil {
		return fmt.Errorf("writing samples: %w", err)
	}
	defer func() { _ = os.Remove(text.Name()) }()
	backfill := exec.CommandContext(ctx, program,
		"tsdb", "create-blocks-from", "openmetrics", "--quiet", oneBlock, text.Name(), data)
	if out, err := backfill.CombinedOutput(); err != nil {
		return fmt.Errorf("promtool: %w\n%s", err, lastLines(out, 15))
	}
	return nil
}

// start starts the server on a free port, the last of its arguments. Another
// program may take the port before it listens; it is then started on another one.
func (p *Prometheus) start(ctx context.Context, program string, args ...string) error {
	last := len(args) - 1
	listen := args[last]
	for attempts := 5; ; attempts-- {
		ports, err := freePorts(1)
		if err != nil {
			return err
		}
		p.URL = "http://" + address(ports[0])
		args[last] = listen + address(ports[0])
		if p.process, err = startProcess(p.dir, prometheus, program, args); err != nil {
			return err
		}
		err = p.waitUntilReady(ctx)
		if err == nil || attempts == 1 || !p.process.portTaken() {
			return err
		}
	}
}

func (p *Prometheus) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		if failure := p.process.failure(); failure != nil {
			return failure
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for Prometheus to be ready, last: %w", err)
		case <-time.After(pollInterval):
		}
	}
}

func (p *Prometheus) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/-/ready", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// Stop ends the server and removes its data.
func (p *Prometheus) Stop() error {
	if p.process != nil {
		p.process.stop(stopGrace)
	}
	return os.RemoveAll(p.dir)
}

// prometheusPrograms are those on PATH, if both are there, else built ones.
func prometheusPrograms(ctx context.Context, log io.Writer) (built, error) {
	found := map[string]string{}
	for _, p := range prometheusPart.programs {
		if path, err := exec.LookPath(p.name); err == nil {
			found[p.name] = path
		}
	}
	if len(found) == len(prometheusPart.programs) {
		return built{prebuilt: found}, nil
	}
	repo, err := repository()
	if err != nil {
		return built{}, err
	}
	return prometheusPart.build(ctx, repo, log)
}
