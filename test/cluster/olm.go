package cluster

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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"
)

// Where [Cluster.StartOLM] puts what it makes.
const (
	OLMNamespace = "olm"
	// OLMCatalog is the CatalogSource, which serves all namespaces.
	OLMCatalog = "local"
)

// Programs of the Operator Lifecycle Manager.
const (
	olmOperator     = "olm"
	catalogOperator = "catalog"
	opm             = "opm"
)

// olmDefinitions are the kinds of objects that OLM's own installation creates.
var olmDefinitions = []string{
	"deploy/chart/crds/0000_50_olm_00-catalogsources.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-clusterserviceversions.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-installplans.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-olmconfigs.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-operatorconditions.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-operatorgroups.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-operators.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-subscriptions.crd.yaml",
}

var catalogSources = schema.GroupVersionResource{Group: "operators.coreos.com", Version: "v1alpha1", Resource: "catalogsources"}

// StartOLM installs the Operator Lifecycle Manager, starts its two operators as
// admins, and gives it a catalog of one bundle, which is a folder. OLM is built
// the first time. StartOLM returns when OLM has reached the catalog.
//
// Catalogs name images of bundles, which OLM unpacks in a Job. Here no Job runs,
// so the catalog carries the bundle's manifests themselves.
func (c *Cluster) StartOLM(ctx context.Context, bundle string) (err error) {
	if c.parts[olmPart.name], err = olmPart.build(ctx, c.repo, c.options.Log); err != nil {
		return err
	}
	definitions, err := c.parts[olmPart.name].objects(olmDefinitions...)
	if err != nil {
		return err
	}
	if err := c.installDefinitions(ctx, definitions); err != nil {
		return err
	}
	namespace := applycorev1.Namespace(OLMNamespace)
	if _, err := c.client.CoreV1().Namespaces().Apply(ctx, namespace, applyOptions); err != nil {
		return err
	}
	catalog, err := c.writeCatalog(ctx, bundle)
	if err != nil {
		return err
	}
	registry, address, err := c.startRegistry(ctx, catalog)
	if err != nil {
		return err
	}
	needs := []*process{registry}
	for _, program := range []string{olmOperator, catalogOperator} {
		p, err := c.startOLMOperator(program)
		if err != nil {
			return err
		}
		needs = append(needs, p)
	}
	source := newCatalogSource(address)
	sources := c.dynamic.Resource(catalogSources).Namespace(OLMNamespace)
	if _, err := sources.Apply(ctx, OLMCatalog, source, applyOptions); err != nil {
		return err
	}
	return c.waitFor(ctx, "OLM to reach its catalog", c.catalogReached, needs...)
}

// startOLMOperator starts one of OLM's operators. Both serve metrics at port 8080
// and go on without them where it is taken.
func (c *Cluster) startOLMOperator(program string) (*process, error) {
	kubeconfig, err := c.writeKubeconfig(program)
	if err != nil {
		return nil, err
	}
	p, err := startProcess(c.state.path, program, c.parts[olmPart.name].program(program),
		[]string{"--namespace=" + OLMNamespace}, "KUBECONFIG="+kubeconfig)
	if err == nil {
		c.addClient(p)
	}
	return p, err
}

// writeCatalog writes a catalog of one bundle and returns its folder.
func (c *Cluster) writeCatalog(ctx context.Context, bundle string) (string, error) {
	channel, err := defaultChannel(bundle)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, c.parts[olmPart.name].program(opm), "render", bundle)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	rendered, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("opm render %s: %w\n%s", bundle, err, lastLines(stderr.Bytes(), 15))
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
	folder := filepath.Join(c.state.path, "olm-catalog")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	return folder, writeFile(filepath.Join(folder, "catalog.json"), catalog.Bytes(), 0o644)
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
func (c *Cluster) startRegistry(ctx context.Context, catalog string) (p *process, where string, err error) {
	p, err = c.startServer(ctx, server{
		part:    olmPart,
		program: opm,
		ports:   1,
		prepare: func(_ context.Context, ports []int) ([]string, error) {
			where = address(ports[0])
			return []string{
				"serve", catalog,
				"--port=" + strconv.Itoa(ports[0]),
				"--pprof-addr=",
				"--termination-log=termination.log",
			}, nil
		},
		ready: func(ctx context.Context) error {
			connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", where)
			if err != nil {
				return err
			}
			return connection.Close()
		},
	})
	if err == nil {
		c.addClient(p)
	}
	return p, where, err
}

func newCatalogSource(address string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": catalogSources.GroupVersion().String(),
		"kind":       "CatalogSource",
		"metadata":   map[string]any{"name": OLMCatalog, "namespace": OLMNamespace},
		"spec":       map[string]any{"sourceType": "grpc", "address": address},
	}}
}

func (c *Cluster) catalogReached(ctx context.Context) error {
	source, err := c.dynamic.Resource(catalogSources).Namespace(OLMNamespace).Get(ctx, OLMCatalog, metav1.GetOptions{})
	if err != nil {
		return err
	}
	state, _, _ := unstructured.NestedString(source.Object, "status", "connectionState", "lastObservedState")
	if state != "READY" {
		return errors.New("the state of the connection is " + strconv.Quote(state))
	}
	return nil
}
