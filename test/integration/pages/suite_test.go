// Package pages shows how people reach pages of trainings: by Ingress, by an HTTPRoute as the Gateway API defines it, and not at
// all where nothing is configured.
package pages

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/test/cluster"
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
	shared.Reconfigure(ctx, func(c *config.Configuration) { c.Pages = pages })
}
