// Package gateway has pages of trainings reached through Traefik, which is a gateway of the Gateway API and an Ingress controller
// that others made: by the requests of a browser, to the process that answers for worker 0.
package gateway

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil/gatewayapi"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestGateway(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Pages of trainings through a gateway")
}

// byGateway has a host for each job, and byIngress all pages at one host.
var (
	byGateway = config.Pages{
		Host: "*.pages.example.com", Scheme: config.SchemeHTTP, Gateway: config.PagesGateway{Namespace: "infra", Name: "web"},
		Annotations: config.PageAnnotations{},
	}
	byIngress = config.Pages{
		Host: "pages.example.com", Scheme: config.SchemeHTTP, IngressClass: "traefik", Annotations: config.PageAnnotations{},
	}
)

var (
	shared = suite.New(cluster.Options{GPUNodes: -1}, startTraefik).Configured(func(c *config.Configuration) { c.Pages = byGateway })
	// port is that of this machine at which Traefik takes requests.
	port int
)

// startTraefik installs the Gateway API, and starts Traefik as a process.
func startTraefik(ctx context.Context, c *cluster.Cluster) error {
	definitions, err := gatewayapi.ReadDefinitions(ctx, "gatewayclasses", "gateways", "httproutes", "grpcroutes", "referencegrants",
		"backendtlspolicies")
	if err != nil {
		return err
	}
	if err := c.InstallDefinitions(ctx, definitions); err != nil {
		return err
	}
	built, err := c.Build(ctx, cluster.Traefik)
	if err != nil {
		return err
	}
	var ping string
	_, err = c.StartServer(ctx, cluster.Server{
		Name:    "traefik",
		Program: built.Program("traefik"),
		Ports:   2,
		Env:     []string{"KUBECONFIG=" + c.KubeconfigPath()},
		Prepare: func(_ context.Context, ports []int) ([]string, error) {
			port, ping = ports[0], cluster.Address(ports[1])
			return []string{
				"--entrypoints.web.address=" + cluster.Address(port), "--entrypoints.traefik.address=" + ping, "--ping=true",
				"--providers.kubernetesgateway=true", "--providers.kubernetesingress=true",
				"--providers.kubernetesingress.ingressclass=traefik",
				"--global.checknewversion=false", "--global.sendanonymoususage=false",
			}, nil
		},
		Ready: func(ctx context.Context) error { return cluster.Healthy(ctx, "http://"+ping+"/ping") },
	})
	return err
}

// webGateway are the objects by which an admin has Traefik take requests for pages.
func webGateway() []client.Object {
	of := func(version, kind string, metadata, spec map[string]any) client.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec,
		}}
	}
	const api = "gateway.networking.k8s.io/v1"
	return []client.Object{
		of("v1", "Namespace", map[string]any{"name": "infra"}, nil),
		of(api, "GatewayClass", map[string]any{"name": "traefik"}, map[string]any{"controllerName": "traefik.io/gateway-controller"}),
		of("networking.k8s.io/v1", "IngressClass", map[string]any{"name": "traefik"},
			map[string]any{"controller": "traefik.io/ingress-controller"}),
		of(api, "Gateway", map[string]any{"name": "web", "namespace": "infra"}, map[string]any{
			"gatewayClassName": "traefik",
			"listeners": []any{map[string]any{
				"name": "http", "protocol": "HTTP", "port": int64(port), "hostname": "*.pages.example.com",
				"allowedRoutes": map[string]any{"namespaces": map[string]any{"from": "All"}},
			}},
		}),
	}
}
