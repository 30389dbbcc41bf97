package olm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
	needs    []*cluster.Process
	catalogs int // that were ever served
}

// startOLM installs the Operator Lifecycle Manager, starts its two operators as
// admins, and gives it a catalog of one bundle, which is a folder. OLM is built
// the first time. startOLM returns when OLM has reached the catalog.
//
// Catalogs name images of bundles, which OLM unpacks in a Job. Here no Job runs,
// so the catalog carries the bundle's manifests themselves.
func startOLM(ctx context.Context, in *testutil.Installation, bundle string) (*lifecycleManager, error) {
	programs, err := in.Cluster.Build(ctx, cluster.OLM)
	if err != nil {
		return nil, err
	}
	m := &lifecycleManager{Installation: in, programs: programs}
	definitions, err := programs.Objects(cluster.OLMDefinitions...)
	if err != nil {
		return nil, err
	}
	if err := in.Cluster.InstallDefinitions(ctx, definitions); err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: olmNamespace}}
	if err := in.Client.Create(ctx, namespace); err != nil {
		return nil, err
	}
	for _, program := range []string{olmOperator, catalogOperator} {
		p, err := m.startOperator(program)
		if err != nil {
			return nil, err
		}
		m.needs = append(m.needs, p)
	}
	return m, m.offer(ctx, bundle)
}

// offer serves a catalog in which each bundle replaces the one before it, points
// the CatalogSource to it as another image would, and returns when OLM has reached it.
func (m *lifecycleManager) offer(ctx context.Context, bundles ...string) error {
	catalog, err := m.writeCatalog(ctx, bundles...)
	if err != nil {
		return err
	}
	registry, address, err := m.startRegistry(ctx, catalog)
	if err != nil {
		return err
	}
	source := newCatalogSource(address)
	if m.catalogs == 1 {
		err = m.Client.Create(ctx, source)
	} else {
		err = m.Client.Patch(ctx, newCatalogSource(""), client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"address":%q}}`, address)))
	}
	if err != nil {
		return err
	}
	reached := func(ctx context.Context) error { return m.catalogReached(ctx, address) }
	return m.Cluster.WaitFor(ctx, "OLM to reach its catalog", reached, append(m.needs, registry)...)
}

// startOperator starts one of OLM's operators. Both serve metrics at port 8080
// and go on without them where it is taken.
func (m *lifecycleManager) startOperator(program string) (*cluster.Process, error) {
	kubeconfig, err := m.Cluster.WriteKubeconfig(program)
	if err != nil {
		return nil, err
	}
	return m.Cluster.StartProgram(program, m.programs.Program(program),
		[]string{"--namespace=" + olmNamespace}, "KUBECONFIG="+kubeconfig)
}

// writeCatalog writes a catalog in which each bundle replaces the one before it,
// and returns its folder. The channel is that of the last.
func (m *lifecycleManager) writeCatalog(ctx context.Context, bundles ...string) (string, error) {
	channel, err := defaultChannel(bundles[len(bundles)-1])
	if err != nil {
		return "", err
	}
	var entries []any
	var all bytes.Buffer
	var replaces string
	for _, bundle := range bundles {
		rendered, name, err := m.render(ctx, bundle)
		if err != nil {
			return "", err
		}
		entry := map[string]any{"name": name}
		if replaces != "" {
			entry["replaces"] = replaces
		}
		entries, replaces = append(entries, entry), name
		_, _ = all.Write(rendered)
	}
	encoder := json.NewEncoder(&all)
	for _, object := range []map[string]any{
		{"schema": "olm.package", "name": packageName, "defaultChannel": channel},
		{"schema": "olm.channel", "package": packageName, "name": channel, "entries": entries},
	} {
		if err := encoder.Encode(object); err != nil {
			return "", err
		}
	}
	m.catalogs++
	folder := filepath.Join(m.Cluster.Dir(), fmt.Sprint("olm-catalog-", m.catalogs))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, "catalog.json"), all.Bytes(), 0o644)
}

// render returns a bundle as catalogs have it, and its name.
func (m *lifecycleManager) render(ctx context.Context, bundle string) (rendered []byte, name string, err error) {
	cmd := exec.CommandContext(ctx, m.programs.Program(opm), "render", bundle)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	rendered, err = cmd.Output()
	if err != nil {
		return nil, "", fmt.Errorf("opm render %s: %w\n%s", bundle, err, stderr.Bytes())
	}
	var named struct{ Name string }
	if err := json.Unmarshal(rendered, &named); err != nil {
		return nil, "", fmt.Errorf("opm render %s: %w", bundle, err)
	}
	return rendered, named.Name, nil
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
func (m *lifecycleManager) startRegistry(ctx context.Context, catalog string) (p *cluster.Process, where string, err error) {
	p, err = m.Cluster.StartServer(ctx, cluster.Server{
		Name:    fmt.Sprint(opm, "-", m.catalogs),
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

// catalogReached is an error unless OLM says that it is connected to the catalog at address.
func (m *lifecycleManager) catalogReached(ctx context.Context, address string) error {
	source := newCatalogSource("")
	if err := m.Client.Get(ctx, client.ObjectKeyFromObject(source), source); err != nil {
		return err
	}
	connection, _, _ := unstructured.NestedStringMap(source.Object, "status", "connectionState")
	if connection["lastObservedState"] != "READY" || connection["address"] != address {
		return fmt.Errorf("the state of the connection to %s is %v", address, connection)
	}
	return nil
}
