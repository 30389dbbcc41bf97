package testutil

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/tideline-io/tideline/test/cluster"
)

// Installation is a cluster of its own with Tideline installed, and the operator running beside it with the role that users
// give it.
type Installation struct {
	*World
	Cluster  *cluster.Cluster
	Operator *Operator

	dir string
}

// Start starts a cluster, installs Tideline and starts the operator, with further flags if any. What o says of files is ignored.
func Start(ctx context.Context, o cluster.Options, flags ...string) (_ *Installation, err error) {
	in := &Installation{}
	if in.dir, err = os.MkdirTemp("", "tideline-suite-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Stop())
		}
	}()
	// The program first: building it takes both cores, which the cluster needs then.
	program, err := BuildOperator(ctx, in.dir)
	if err != nil {
		return nil, err
	}
	o.AuditLog, o.Dir = filepath.Join(in.dir, "audit.log"), filepath.Join(in.dir, "cluster")
	if in.Cluster, err = cluster.Start(ctx, o); err != nil {
		return nil, err
	}
	if in.World, err = NewWorld(in.Cluster.KubeconfigPath(), o.AuditLog); err != nil {
		return nil, err
	}
	if err := in.Install(ctx); err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(in.dir, "operator.kubeconfig")
	if err := in.Cluster.KubeconfigFor(ctx, OperatorNamespace, OperatorServiceAccount, kubeconfig); err != nil {
		return nil, err
	}
	in.Operator, err = StartOperator(ctx, OperatorOptions{
		Program: program, Kubeconfig: kubeconfig, Log: filepath.Join(in.dir, "operator.log"), Args: flags,
	})
	return in, err
}

// Stop ends operator and cluster. It returns an error if one of their processes had ended before, if the operator's log has what
// it must never have, or if the operator asked for what its role does not allow. The logs stay.
func (in *Installation) Stop() error {
	var errs []error
	if in.Operator != nil && in.Operator.current != nil {
		errs = append(errs, in.Operator.Stop(), in.Operator.Misbehavior(), in.Forbidden())
	}
	if in.Cluster != nil {
		errs = append(errs, in.Cluster.Stop())
	}
	return errors.Join(errs...)
}

// Logs is the folder with the logs of all processes and the audit log.
func (in *Installation) Logs() string { return in.dir }

// RemoveLogs removes what Stop leaves.
func (in *Installation) RemoveLogs() error { return os.RemoveAll(in.dir) }
