package olm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// Where startOLM puts what it makes.
const (
	olmNamespace = "olm"
	// olmCatalog is the CatalogSource, which serves all namespaces.
	olmCatalog = "local"
)

// Programs of the Operator Lifecycle Manager.
const (
	olmOperator     = "olm"
	catalogOperator = "catalog"
	opm             = "opm"
)

// lifecycleManager is the Operator Lifecycle Manager on a cluster.
type lifecycleManager struct {
	*testutil.Installation

	programs cluster.Built
}

// startOLM installs the Operator Lifecycle Manager, starts its two operators as
// admins, and gives it a catalog of one bundle, which is a folder. OLM is built
// the first time. startOLM returns when OLM has reached the catalog.
//
// Catalogs name images of bundles, which OLM unpacks in a Job. Here no Job runs,
// so the catalog carries the bundle's manifests themselves.
func startOLM(ctx context.Context, in *testutil.Installation, bundle string) error {
	programs, err := in.Cluster.Build(ctx, cluster.OLM)
	if err != nil {
		return err
	}
	m := lifecycleManager{in, programs}
	definitions, err := programs.Objects(cluster.OLMDefinitions...)
	if err != nil {
		return err
	}
	if err := in.Cluster.InstallDefinitions(ctx, definitions); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: olmNamespace}}
	if err := in.Client.Create(ctx, namespace); err != nil {
		return err
	}
	catalog, err := m.writeCatalog(ctx, bundle)
	if err != nil {
		return err
	}
	registry, address, err := m.startRegistry(ctx, catalog)
	if err != nil {
		return err
	}
	needs := []*cluster.Process{registry}
	for _, program := range []string{olmOperator, catalogOperator} {
		p, err := m.startOperator(program)
		if err != nil {
			return err
		}
		needs = append(needs, p)
	}
	if err := in.Client.Create(ctx, newCatalogSource(address)); err != nil {
		return err
	}
	return in.Cluster.WaitFor(ctx, "OLM to reach its catalog", m.catalogReached, needs...)
}

// startOperator starts one of OLM's operators. Both serve metrics at port 8080
// and go on without them where it is taken.
func (m lifecycleManager) startOperator(program string) (*cluster.Process, error) {
	kubeconfig, err := m.Cluster.WriteKubeconfig(program)
	if err != nil {
		return nil, err
	}
	return m.Cluster.StartProgram(program, m.programs.Program(program),
		[]string{"--namespace=" + olmNamespace}, "KUBECONFIG="+kubeconfig)
}

// writeCatalog writes a catalog of one bundle and returns its folder.
func (m lifecycleManager) writeCatalog(ctx context.Context, bundle string) (string, error) {
	channel, err := defaultChannel(bundle)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, m.programs.Program(opm), "render", bundle)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	rendered, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("opm render %s: %w\n%s", bundle, err, stderr.Bytes())
	}
	var named struct{ Name, Package string }
	if err := json.Unmarshal(rendered, &named); err != nil {
		return "", fmt.Errorf("opm render %s: %w", bundle, err)
	}
	var catalog bytes.Buffer
	encoder := json.NewEncoder(&catalog)
	for _, object := range []map[string]any{
		{"schema": "olm.package", "name": named.Package, "defaultChannel": channel},
		{"schema": "olm.channel", "package": named.Package, "name": channel, "entries": []any{map[string]any{"name": named.Name}}},
	} {
		if err := encoder.Encode(object); err != nil {
			return "", err
		}
	}
	_, _ = catalog.Write(rendered)
	folder := filepath.Join(m.Cluster.Dir(), "olm-catalog")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, "catalog.json"), catalog.Bytes(), 0o644)
}

// defaultChannel is the channel that a bundle says its package has by default.
func defaultChannel(bundle string) (string, error) {
	const name = "operators.operatorframework.io.bundle.channel.default.v1"
	content, err := os.ReadFile(filepath.Join(bundle, "metadata", "annotations.yaml"))
	if err != nil {
		return "", err
	}
	var metadata struct{ Annotations map[string]string }
	if err := yaml.Unmarshal(content, &metadata); err != nil {
		return "", fmt.Errorf("reading the annotations of the bundle in %s: %w", bundle, err)
	}
	if metadata.Annotations[name] == "" {
		return "", fmt.Errorf("the bundle in %s has no annotation %s", bundle, name)
	}
	return metadata.Annotations[name], nil
}

// startRegistry serves a catalog as its image would, and returns where. As in an
// image, opm writes /etc/nsswitch.conf where there is none, if it may.
func (m lifecycleManager) startRegistry(ctx context.Context, catalog string) (p *cluster.Process, where string, err error) {
	p, err = m.Cluster.StartServer(ctx, cluster.Server{
		Name:    opm,
		Program: m.programs.Program(opm),
		Ports:   1,
		Prepare: func(_ context.Context, ports []int) ([]string, error) {
			where = cluster.Address(ports[0])
			return []string{
				"serve", catalog,
				"--port=" + strconv.Itoa(ports[0]),
				"--pprof-addr=",
				"--termination-log=termination.log",
			}, nil
		},
		Ready: func(ctx context.Context) error {
			connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", where)
			if err != nil {
				return err
			}
			return connection.Close()
		},
	})
	return p, where, err
}

func newCatalogSource(address string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1",
		"kind":       "CatalogSource",
		"metadata":   map[string]any{"name": olmCatalog, "namespace": olmNamespace},
		"spec":       map[string]any{"sourceType": "grpc", "address": address},
	}}
}

func (m lifecycleManager) catalogReached(ctx context.Context) error {
	source := newCatalogSource("")
	if err := m.Client.Get(ctx, client.ObjectKeyFromObject(source), source); err != nil {
		return err
	}
	state, _, _ := unstructured.NestedString(source.Object, "status", "connectionState", "lastObservedState")
	if state != "READY" {
		return errors.New("the state of the connection is " + strconv.Quote(state))
	}
	return nil
}
