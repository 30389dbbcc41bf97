// Package pages shows how people reach pages of trainings: by Ingress, by an HTTPRoute as the Gateway API defines it, and not at
// all where nothing is configured.
package pages

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestPages(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Pages of trainings")
}

// byIngress has all pages at one host.
var byIngress = config.Pages{
	Host: "pages.example.com", Scheme: config.SchemeHTTPS, IngressClass: "nginx",
	Annotations: config.PageAnnotations{"example.com/auth": "sso"},
}

// byGateway has a host for each job.
var byGateway = config.Pages{
	Host: "*.pages.example.com", Scheme: config.SchemeHTTPS, Gateway: config.PagesGateway{Namespace: "infra", Name: "web"},
	Annotations: config.PageAnnotations{},
}

var shared = suite.New(cluster.Options{GPUNodes: -1}).Configured(func(c *config.Configuration) { c.Pages = byIngress })

// restart starts the operator anew with these pages in its configuration.
func restart(ctx context.Context, pages config.Pages) {
	GinkgoHelper()
	c := config.DefaultConfiguration()
	c.Pages = pages
	content, err := yaml.Marshal(c)
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(GinkgoT().TempDir(), "configuration.yaml")
	Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
	in := shared.Installation()
	Expect(in.StopOperator()).To(Succeed(), "the operator ends, and its log is clean")
	Expect(in.Operate(ctx, testutil.OperatorOptions{Args: []string{"--config=" + file}})).To(Succeed(), "and is started anew")
}

// grant gives the operator the rights of component job-pages.
func grant(s *testutil.Scenario) {
	GinkgoHelper()
	role, err := testutil.Manifests(s.Context(), "components/job-pages/*.yaml")
	Expect(err).NotTo(HaveOccurred(), "the component is read")
	for _, o := range role {
		if err := s.Client.Create(s.Context(), o); !apierrors.IsAlreadyExists(err) {
			Expect(err).NotTo(HaveOccurred(), "the component is applied")
		}
	}
}

// installGatewayAPI gives the API server the definition of HTTPRoute, as the project releases it.
func installGatewayAPI(s *testutil.Scenario) {
	GinkgoHelper()
	cmd := exec.CommandContext(s.Context(), "go", "mod", "download", "-json", "sigs.k8s.io/gateway-api")
	cmd.Dir = filepath.Join("..", "..", "tools", "gatewayapi")
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "the module is there: %s", out)
	var module struct{ Dir string }
	Expect(json.Unmarshal(out, &module)).To(Succeed())
	content, err := os.ReadFile(filepath.Join(module.Dir, "config", "crd", "standard", "gateway.networking.k8s.io_httproutes.yaml"))
	Expect(err).NotTo(HaveOccurred(), "it has the definition")
	definition := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(content, definition)).To(Succeed())
	s.Create(definition)
}
