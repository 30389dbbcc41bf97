package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// play is a story with the stage that it needs.
type play interface {
	// cast reads what the story is about, and returns the cluster that it needs.
	cast(root string) (cluster.Options, error)
	// prepare is called when Tideline is installed. It returns further flags for the operator, which starts then.
	prepare(ctx context.Context, s *stage) ([]string, error)
	// tell tells the story, calls told, and then goes on until ctx ends if told returns true.
	tell(ctx context.Context, s *stage, out *printer, sh *shell, told func() bool) error
	// suggestions are commands to go on with by hand.
	suggestions() string
}

// stage is what a story needs: a cluster with an operator that acts on it.
type stage struct {
	root, kubectl string
	// dir is for files; it is removed at the end.
	dir         string
	cluster     *cluster.Cluster
	world       *testutil.World
	operator    *testutil.Operator
	operatorLog string
	// served is where the operator serves its console, as host:port.
	served string
}

// run tells the story, and then stays until ctx ends unless it is told only once. It ends all that it started and removes
// every file it made.
func run(ctx context.Context, p play, oneshot bool, out *printer, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "tideline-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := setUp(ctx, p, dir, progress)
	defer func() { err = errors.Join(err, s.end()) }()
	if err != nil {
		return err
	}
	sh, err := newShell(out, s.root, dir, s.kubectl, s.cluster.KubeconfigPath())
	if err != nil {
		return err
	}
	s.showConsole(out)
	began := time.Now()
	err = s.perform(ctx, p, out, sh, func() bool {
		out.note("It took %s.", seconds(time.Since(began)))
		if !oneshot {
			s.invite(out, p.suggestions())
		}
		return !oneshot
	})
	switch {
	case err != nil:
		return errors.Join(err, s.operator.Ended())
	case oneshot:
		return s.operator.Misbehavior()
	case ctx.Err() != nil:
		return nil
	}
	return s.operator.Ended()
}

// setUp starts everything. What it returns must be ended, also after an error.
func setUp(ctx context.Context, p play, dir string, progress io.Writer) (s *stage, err error) {
	s = &stage{dir: dir, operatorLog: filepath.Join(dir, "operator.log")}
	if s.root, err = repository(ctx); err != nil {
		return s, err
	}
	options, err := p.cast(s.root)
	if err != nil {
		return s, err
	}
	if s.kubectl, err = cluster.Kubectl(ctx, progress); err != nil {
		return s, err
	}
	program, err := buildOperator(ctx, s.root, dir, progress)
	if err != nil {
		return s, err
	}
	options.Log = progress
	if s.cluster, err = cluster.Start(ctx, options); err != nil {
		return s, err
	}
	if s.world, err = testutil.NewWorld(s.cluster.KubeconfigPath(), ""); err != nil {
		return s, err
	}
	if err := errors.Join(s.world.Install(ctx), installConsole(ctx, s.world)); err != nil {
		return s, err
	}
	flags, err := p.prepare(ctx, s)
	if err != nil {
		return s, err
	}
	return s, s.startOperator(ctx, program, flags)
}

// startOperator starts the operator with the rights that its installation gives it.
func (s *stage) startOperator(ctx context.Context, program string, flags []string) error {
	kubeconfig := filepath.Join(s.dir, "operator.kubeconfig")
	err := s.cluster.KubeconfigFor(ctx, testutil.OperatorNamespace, testutil.OperatorServiceAccount, kubeconfig)
	if err != nil {
		return err
	}
	if s.served, err = testutil.FreeAddress(); err != nil {
		return err
	}
	flags = append([]string{"--resync-period=10h", "--metrics-bind-address=" + s.served, "--console"}, flags...)
	s.operator, err = testutil.StartOperator(ctx, testutil.OperatorOptions{
		Program: program, Kubeconfig: kubeconfig, Log: s.operatorLog, Args: flags,
	})
	return err
}

// perform has the story told for as long as the operator runs.
func (s *stage) perform(ctx context.Context, p play, out *printer, sh *shell, told func() bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.operator.Done():
			cancel(errors.New("the story broke off"))
		case <-ctx.Done():
		}
	}()
	return p.tell(ctx, s, out, sh, told)
}

// invite says how to go on by hand.
func (s *stage) invite(out *printer, suggestions string) {
	out.note("The cluster and the console at %s stay up until you press Ctrl-C here. In another terminal, in this folder:",
		s.console())
	alias := ""
	if filepath.IsAbs(s.kubectl) {
		alias = "\n  alias kubectl=" + s.kubectl // there is none on PATH
	}
	out.lines("", fmt.Sprintf(`  export KUBECONFIG=%s%s
%s
  tail -f %s`, s.cluster.KubeconfigPath(), alias, suggestions, s.operatorLog))
}

// end ends what was started, in reverse order.
func (s *stage) end() error {
	var errs []error
	if s.operator != nil && s.operator.Ended() == nil {
		errs = append(errs, s.operator.Stop())
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	return errors.Join(errs...)
}
