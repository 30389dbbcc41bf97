package doctor

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// Exit codes, beside 0 for a cluster that is set up.
const (
	ExitFindings    = 1
	ExitNotExamined = 2
)

// Timeout bounds each request.
const Timeout = 10 * time.Second

// Run is `tideline doctor`: it prints on out what it finds about the cluster, and what to do. Why it could not look goes to errs.
func Run(
	ctx context.Context, cfg *config.Configuration, out, errs io.Writer, connect func() (*rest.Config, client.Client, error),
) int {
	findings, err := diagnose(ctx, cfg, connect)
	if err != nil {
		_, _ = fmt.Fprintln(errs, "Cannot examine the cluster:", err)
		return ExitNotExamined
	}
	wrong, err := Print(out, findings)
	switch {
	case err != nil:
		return ExitNotExamined
	case wrong > 0:
		return ExitFindings
	}
	return 0
}

func diagnose(
	ctx context.Context, cfg *config.Configuration, connect func() (*rest.Config, client.Client, error),
) ([]Finding, error) {
	cluster, c, err := connect()
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server at %s: %w", cluster.Host, err)
	}
	facts, err := Gather(ctx, c, d)
	if err != nil {
		return nil, err
	}
	return Examine(facts, cfg), nil
}
