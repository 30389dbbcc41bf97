package testutil

import (
	"cmp"
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

	dir, program string
}

// Start starts a cluster, installs Tideline and starts the operator, with further flags if any. What o says of files is ignored.
func Start(ctx context.Context, o cluster.Options, flags ...string) (*Installation, error) {
	in, err := Prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	err = in.Install(ctx)
	if err == nil {
		err = in.Operate(ctx, OperatorOptions{Args: flags})
	}
	if err != nil {
		err = errors.Join(err, in.Stop())
	}
	return in, err
}

// Prepare builds the operator and starts a cluster without Tideline. What o says of files is ignored.
func Prepare(ctx context.Context, o cluster.Options) (_ *Installation, err error) {
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
	if in.program, err = BuildOperator(ctx, in.dir); err != nil {
		return nil, err
	}
	o.AuditLog, o.Dir = filepath.Join(in.dir, "audit.log"), filepath.Join(in.dir, "cluster")
	if in.Cluster, err = cluster.Start(ctx, o); err != nil {
		return nil, err
	}
	in.World, err = NewWorld(in.Cluster.KubeconfigPath(), o.AuditLog)
	return in, err
}

// Operate starts the operator with the rights of its ServiceAccount; o says with which flags and variables, and may name another
// program than the one of this source tree.
func (in *Installation) Operate(ctx context.Context, o OperatorOptions) error {
	o.Program = cmp.Or(o.Program, in.program)
	o.Kubeconfig, o.Log = filepath.Join(in.dir, "operator.kubeconfig"), filepath.Join(in.dir, "operator.log")
	if err := in.Cluster.KubeconfigFor(ctx, OperatorNamespace, OperatorServiceAccount, o.Kubeconfig); err != nil {
		return err
	}
	in.Operator = NewOperator(o)
	return in.Operator.Start(ctx)
}

// Stop ends operator and cluster. It returns an error if one of their processes had ended before, if the operator's log has what
// it must never have, or if the operator asked for what its role does not allow. The logs stay.
func (in *Installation) Stop() error {
	err := in.StopOperator()
	if in.Cluster != nil {
		err = errors.Join(err, in.Cluster.Stop())
	}
	return err
}

// StopOperator ends the operator for good, and returns what Stop would say of it.
func (in *Installation) StopOperator() error {
	operator := in.Operator
	if operator == nil || operator.current == nil {
		return nil
	}
	in.Operator = nil
	return errors.Join(operator.Stop(), operator.Misbehavior(), in.Forbidden())
}

// Logs is the folder with the logs of all processes and the audit log.
func (in *Installation) Logs() string { return in.dir }

// RemoveLogs removes what Stop leaves.
func (in *Installation) RemoveLogs() error { return os.RemoveAll(in.dir) }
