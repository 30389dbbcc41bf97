package config

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestPoolsThatMayBeNamed(t *testing.T) {
	g := NewWithT(t)
	m := Merges{Pools: []string{"day", "night"}}
	g.Expect(m.AllowsPool("night")).To(BeTrue())
	g.Expect(m.AllowsPool("default")).To(BeFalse())
	g.Expect(m.AllowsPool("")).To(BeFalse())
}

func TestServersThatMayBeNamed(t *testing.T) {
	m := Merges{Endpoints: []string{"https://S3.example", "http://minio.models:9000/", "http://10.0.0.1", "https://[FD00::1]:8443"}}
	for server, allowed := range map[string]bool{
		"https://s3.example":              true,
		"https://s3.example/":             true,
		"HTTPS://s3.EXAMPLE:443":          true,
		"http://minio.models:9000":        true,
		"http://10.0.0.1:80":              true,
		"https://[fd00::1]:8443":          true,
		"http://s3.example":               false, // what is sent there could be read on the way
		"https://s3.example:8443":         false,
		"http://minio.models":             false,
		"https://s3.example.evil":         false,
		"https://x.s3.example":            false,
		"https://s3.example@evil.example": false,
		"https://evil.example#s3.example": false,
		"https://s3.example/bucket":       false,
		"https://s3.example?a=b":          false,
		"s3.example":                      false,
		"aws":                             false,
		"":                                false,
		"http://169.254.169.254":          false,
		"::":                              false,
	} {
		NewWithT(t).Expect(m.AllowsEndpoint(server)).To(Equal(allowed), server)
	}
	g := NewWithT(t)
	g.Expect(DefaultMerges().AllowsEndpoint("")).To(BeTrue(), "AWS's own")
	g.Expect(DefaultMerges().AllowsEndpoint("https://s3.example")).To(BeFalse())
	g.Expect(DefaultMerges().AllowsEndpoint("aws")).To(BeFalse(), "a store names no server to mean AWS's own")
	g.Expect(Merges{Endpoints: []string{}}.AllowsEndpoint("")).To(BeFalse())
}

func TestFoldersThatMayBeStores(t *testing.T) {
	m := Merges{LocalStores: "/var/lib/stores/"}
	for bucket, allowed := range map[string]bool{
		"/var/lib/stores/ctr":         true,
		"/var/lib/stores/a/b/":        true,
		"/var/lib/stores/a/../b":      true,
		"/var/lib/stores":             true,
		"/var/lib/stores/../x":        false,
		"/var/lib/stores/a/../../x":   false,
		"/var/lib/stores2":            false,
		"/var/lib":                    false,
		"/":                           false,
		"":                            false,
		"ctr":                         false,
		"var/lib/stores/ctr":          false,
		"/etc/kubernetes/pki":         false,
		"/var/lib/stores/..hidden":    true,
		"/var/lib//stores/./ctr/data": true,
	} {
		NewWithT(t).Expect(m.AllowsLocal(bucket)).To(Equal(allowed), bucket)
	}
	NewWithT(t).Expect(DefaultMerges().AllowsLocal("/var/lib/stores")).To(BeFalse(), "without a folder there are none")
}
