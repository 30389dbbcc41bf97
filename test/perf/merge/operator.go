package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// startOperator installs Tideline and starts the operator, which may read stores below a folder and use these Queues. Its
// files are in dir.
func startOperator(ctx context.Context, c *cluster.Cluster, w *testutil.World, program, dir, stores string, queues []string) (
	*testutil.Operator, error) {
	if err := w.Install(ctx); err != nil {
		return nil, err
	}
	kubeconfig, configuration := filepath.Join(dir, "operator.kubeconfig"), filepath.Join(dir, "configuration.yaml")
	if err := c.KubeconfigFor(ctx, testutil.OperatorNamespace, testutil.OperatorServiceAccount, kubeconfig); err != nil {
		return nil, err
	}
	// A folder that is a link, as TMPDIR may be, is not where the stores are.
	stores, err := filepath.EvalSymlinks(stores)
	if err != nil {
		return nil, err
	}
	content := fmt.Sprintf("apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\n"+
		"merges:\n  pools: [%s]\n  localStores: %q\n",
		strings.Join(queues, ", "), stores)
	if err := os.WriteFile(configuration, []byte(content), 0o600); err != nil {
		return nil, err
	}
	return testutil.StartOperator(ctx, testutil.OperatorOptions{
		Program: program, Kubeconfig: kubeconfig, Log: filepath.Join(dir, "operator.log"), Bare: true,
		Args: []string{
			"--config=" + configuration, "--webhooks=false", "--health-probe-bind-address=0", "--metrics-bind-address=0",
			"--leader-elect=false",
		},
	})
}
