package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Schemes of URLs of pages.
const (
	SchemeHTTPS, SchemeHTTP = "https", "http"
)

const (
	// ownHosts begins a host of which each job gets one of its own.
	ownHosts = "*."
	// maxOwnHost leaves room for the label of a job before the rest of the host.
	maxOwnHost = validation.DNS1123SubdomainMaxLength - validation.DNS1123LabelMaxLength - 1
	// maxPageAnnotations is how many annotations a route may get, each with a value of so many bytes at most.
	maxPageAnnotations, maxPageAnnotation = 16, 4096
)

// Pages says how pages of trainings are reached from outside the cluster. Default: not at all.
type Pages struct {
	// Host is the DNS name at which they are: pages.example.com for all jobs, or *.pages.example.com for one of its own for each
	// job, so that no page can act in a browser as that of another job. Empty: none is reached. Default: "".
	Host string `json:"host"`
	// Scheme of their URLs: https, or http. Certificates are the gateway's or the Ingress controller's. Default: https.
	Scheme string `json:"scheme"`
	// Gateway is the Gateway to which HTTPRoutes attach; its listeners must allow routes of the jobs' namespaces. Default: none.
	Gateway PagesGateway `json:"gateway"`
	// IngressClass is the class of the Ingresses that are made instead, where there is no Gateway. Default: "".
	IngressClass string `json:"ingressClass"`
	// Annotations are those of each HTTPRoute or Ingress, such as who may see the page by the means of the Ingress controller; at
	// most 16. Default: none.
	Annotations PageAnnotations `json:"annotations"`
}

// PagesGateway names a Gateway of the Gateway API.
type PagesGateway struct {
	// Namespace of the Gateway. Default: "".
	Namespace string `json:"namespace"`
	// Name of the Gateway. Default: "".
	Name string `json:"name"`
}

// PageAnnotations are annotations by name.
type PageAnnotations map[string]string

// DefaultPages returns the defaults: no page is reached.
func DefaultPages() Pages { return Pages{Scheme: SchemeHTTPS, Annotations: PageAnnotations{}} }

// IsConfigured is true if pages of jobs are reached from outside.
func (p Pages) IsConfigured() bool { return p.Host != "" }

// UsesGateway is true if HTTPRoutes lead to pages, and false if Ingresses do.
func (p Pages) UsesGateway() bool { return p.Gateway.Name != "" }

// HostOf is the host of a job's pages, where label is a DNS label that stands for the job: it is used if each job
// has a host.
func (p Pages) HostOf(label string) string {
	if rest, own := strings.CutPrefix(p.Host, ownHosts); own {
		return label + "." + rest
	}
	return p.Host
}

func (p *problems) pages(c Pages) {
	p.pageHost(c.Host)
	p.oneOf("pages.scheme", c.Scheme, SchemeHTTPS, SchemeHTTP)
	gateway := c.Gateway != PagesGateway{}
	switch {
	case c.Host == "" && (gateway || c.IngressClass != ""):
		p.value("pages.host", "", "it must be set where pages.gateway or pages.ingressClass is: name the host, or leave all out")
	case c.Host != "" && !gateway && c.IngressClass == "":
		p.value("pages.host", c.Host, "it needs pages.gateway or pages.ingressClass, by which it is reached: set one of them")
	case gateway && c.IngressClass != "":
		p.value("pages.ingressClass", c.IngressClass, "pages.gateway leads to the same pages: leave one of them")
	}
	if gateway {
		if len(validation.IsDNS1123Label(c.Gateway.Namespace)) > 0 {
			p.value("pages.gateway.namespace", c.Gateway.Namespace, "it must be the namespace of a Gateway")
		}
		if len(validation.IsDNS1123Subdomain(c.Gateway.Name)) > 0 {
			p.value("pages.gateway.name", c.Gateway.Name, "it must be the name of a Gateway")
		}
	}
	if c.IngressClass != "" && len(validation.IsDNS1123Subdomain(c.IngressClass)) > 0 {
		p.value("pages.ingressClass", c.IngressClass, "it must be the name of an IngressClass")
	}
	p.pageAnnotations(c.Annotations)
}

func (p *problems) pageHost(host string) {
	name, own := strings.CutPrefix(host, ownHosts)
	switch {
	case host == "":
	case len(validation.IsDNS1123Subdomain(name)) > 0, net.ParseIP(name) != nil:
		p.value("pages.host", host, "it must be a DNS name such as pages.example.com, or *.pages.example.com for one of its own for "+
			"each job")
	case own && len(name) > maxOwnHost:
		p.value("pages.host", host, fmt.Sprintf("a label for each job goes before it, so it may have %d characters behind the dot",
			maxOwnHost))
	}
}

func (p *problems) pageAnnotations(all PageAnnotations) {
	if len(all) > maxPageAnnotations {
		p.add("pages.annotations", fmt.Sprintf("has %d entries: it may have %d", len(all), maxPageAnnotations))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		path := entryPath("pages.annotations", name)
		switch value := all[name]; {
		case len(validation.IsQualifiedName(strings.ToLower(name))) > 0:
			p.add(path, "does not name an annotation: write it as PREFIX/NAME")
		case strings.HasPrefix(name, "tideline.io/"):
			p.add(path, "is one of Tideline's own: leave it out")
		case len(value) > maxPageAnnotation:
			p.add(path, fmt.Sprintf("has %d bytes: it may have %d", len(value), maxPageAnnotation))
		}
	}
}
