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

// The jobs of the story. The node has as many GPUs as the first can use.
const (
	sampleA = "config/samples/job-a.yaml"
	sampleB = "config/samples/job-b.yaml"
)

// stage is what the story needs: a cluster with an operator that acts on it.
type stage struct {
	root, kubectl string
	a, b          sample
	cluster       *cluster.Cluster
	world         *testutil.World
	operator      *testutil.Operator
	operatorLog   string
}

// run tells the story, and then stays until ctx ends unless it is told only once. It ends all that it started and removes
// every file it made.
func run(ctx context.Context, oneshot bool, out *printer, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "tideline-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := setUp(ctx, dir, progress)
	defer func() { err = errors.Join(err, s.end()) }()
	if err != nil {
		return err
	}
	sh, err := newShell(out, s.root, dir, s.kubectl, s.cluster.KubeconfigPath())
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.tell(ctx, out, sh); err != nil {
		return errors.Join(err, s.operator.Ended())
	}
	out.note("It took %s.", seconds(time.Since(began)))
	if oneshot {
		return s.operator.Misbehavior()
	}
	s.invite(out)
	select {
	case <-ctx.Done():
		return nil
	case <-s.operator.Done():
		return s.operator.Ended()
	}
}

// setUp starts everything. What it returns must be ended, also after an error.
func setUp(ctx context.Context, dir string, progress io.Writer) (s *stage, err error) {
	s = &stage{operatorLog: filepath.Join(dir, "operator.log")}
	if s.root, err = repository(ctx); err != nil {
		return s, err
	}
	if s.a, err = readSample(s.root, sampleA); err != nil {
		return s, err
	}
	if s.b, err = readSample(s.root, sampleB); err != nil {
		return s, err
	}
	if s.kubectl, err = cluster.Kubectl(ctx, progress); err != nil {
		return s, err
	}
	program, err := buildOperator(ctx, s.root, dir, progress)
	if err != nil {
		return s, err
	}
	s.cluster, err = cluster.Start(ctx, cluster.Options{GPUNodes: 1, GPUsPerNode: int(s.a.maximum), Log: progress})
	if err != nil {
		return s, err
	}
	if s.world, err = testutil.NewWorld(s.cluster.KubeconfigPath(), ""); err != nil {
		return s, err
	}
	if err := s.world.Install(ctx); err != nil {
		return s, err
	}
	return s, s.startOperator(ctx, program, filepath.Join(dir, "operator.kubeconfig"))
}

// startOperator starts the operator with the rights that its installation gives it.
func (s *stage) startOperator(ctx context.Context, program, kubeconfig string) error {
	err := s.cluster.KubeconfigFor(ctx, testutil.OperatorNamespace, testutil.OperatorServiceAccount, kubeconfig)
	if err != nil {
		return err
	}
	s.operator, err = testutil.StartOperator(ctx, testutil.OperatorOptions{
		Program: program, Kubeconfig: kubeconfig, Log: s.operatorLog, Args: []string{"--resync-period=10h"},
	})
	return err
}

func (s *stage) tell(ctx context.Context, out *printer, sh *shell) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.operator.Done():
			cancel(errors.New("the story broke off"))
		case <-ctx.Done():
		}
	}()
	scene := newScene(timeline{host: s.a, newcomer: s.b})
	if err := scene.watch(ctx, s.world.Config, s.world.Client.Scheme(), s.a.namespace); err != nil {
		return err
	}
	return (&story{printer: out, shell: sh, scene: scene, a: s.a, b: s.b}).tell(ctx)
}

// invite says how to go on by hand.
func (s *stage) invite(out *printer) {
	out.note("The cluster stays up until you press Ctrl-C here. In another terminal, in this folder:")
	alias := ""
	if filepath.IsAbs(s.kubectl) {
		alias = "\n  alias kubectl=" + s.kubectl // there is none on PATH
	}
	out.lines("", fmt.Sprintf(`  export KUBECONFIG=%s%s
  kubectl scale etj %[3]s --replicas=4               # the highest workers leave at once
  kubectl delete pod %[3]s-worker-0 --wait=false     # counts as one restart; the others keep their pods
  kubectl apply -f config/samples/smallest.yaml
  kubectl patch etj %[3]s --type=merge -p '{"spec":{"minReplicas":9}}'     # is refused, with the reason
  kubectl describe etj %[3]s
  tail -f %[4]s`, s.cluster.KubeconfigPath(), alias, s.a.name, s.operatorLog))
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
