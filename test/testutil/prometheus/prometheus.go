// Package prometheus runs a Prometheus that knows what a test writes. It needs no cluster.
package prometheus

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

	"github.com/tideline-io/tideline/test/cluster"
)

// The programs of Prometheus.
const (
	prometheus = "prometheus"
	promtool   = "promtool"
)

// Times that a slow machine may need to start Prometheus, and between two looks
// whether it has.
const (
	patience     = 2 * time.Minute
	pollInterval = 50 * time.Millisecond
)

// oneBlock makes promtool read a file once for each 20 days and not for each two
// hours: the blocks of a database are at most so long.
const oneBlock = "--max-block-duration=486h"

// A Server answers questions about samples that were there before it started,
// and scrapes nothing. It belongs to no cluster.
type Server struct {
	// URL of its HTTP API.
	URL string

	dir     string
	process *cluster.Process
}

// Start starts a Prometheus over what samples writes, which is text in the format
// of OpenMetrics with times, on the loopback interface. It is built the first time,
// unless Prometheus is on PATH. Start returns when it answers; Stop ends it and
// removes what it wrote.
func Start(ctx context.Context, log io.Writer, samples func(io.Writer) error) (_ *Server, err error) {
	path, err := programs(ctx, log)
	if err != nil {
		return nil, err
	}
	p := &Server{}
	if p.dir, err = os.MkdirTemp("", "tideline-prometheus-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop())
		}
	}()
	data := filepath.Join(p.dir, "data")
	if err := p.backfill(ctx, path(promtool), data, samples); err != nil {
		return nil, err
	}
	configuration := filepath.Join(p.dir, "prometheus.yml")
	if err := os.WriteFile(configuration, []byte("global: {}\n"), 0o600); err != nil {
		return nil, err
	}
	return p, p.start(ctx, path(prometheus), "--config.file="+configuration, "--storage.tsdb.path="+data,
		"--storage.tsdb.retention.time=10y", "--web.listen-address=")
}

// backfill makes blocks of samples.
func (p *Server) backfill(ctx context.Context, program, data string, samples func(io.Writer) error) error {
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
		return fmt.Errorf("promtool: %w\n%s", err, out)
	}
	return nil
}

// start starts the server on a free port, the last of its arguments. Another
// program may take the port before it listens; it is then started on another one.
func (p *Server) start(ctx context.Context, program string, args ...string) error {
	last := len(args) - 1
	listen := args[last]
	for attempts := 5; ; attempts-- {
		ports, err := cluster.FreePorts(1)
		if err != nil {
			return err
		}
		p.URL = "http://" + cluster.Address(ports[0])
		args[last] = listen + cluster.Address(ports[0])
		if p.process, err = cluster.StartProcess(p.dir, prometheus, program, args); err != nil {
			return err
		}
		err = p.waitUntilReady(ctx)
		if err == nil || attempts == 1 || !p.process.PortTaken() {
			return err
		}
	}
}

func (p *Server) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		if failure := p.process.Failure(); failure != nil {
			return failure
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for Prometheus to be ready, last: %w", err)
		case <-time.After(pollInterval):
		}
	}
}

func (p *Server) ready(ctx context.Context) error {
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
func (p *Server) Stop() error {
	if p.process != nil {
		p.process.Stop()
	}
	return os.RemoveAll(p.dir)
}

// Build builds what Start starts, unless Prometheus is on PATH: about 7 minutes
// on two cores the first time.
func Build(ctx context.Context, log io.Writer) error {
	_, err := programs(ctx, log)
	return err
}

// programs says where the programs are: on PATH, if both are there, else built.
func programs(ctx context.Context, log io.Writer) (func(name string) string, error) {
	found := map[string]string{}
	for _, name := range []string{prometheus, promtool} {
		if path, err := exec.LookPath(name); err == nil {
			found[name] = path
		}
	}
	if len(found) == 2 {
		return func(name string) string { return found[name] }, nil
	}
	built, err := cluster.Prometheus.Build(ctx, log)
	return built.Program, err
}
