package serverurl

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestServersAreComparedInOneForm(t *testing.T) {
	for server, form := range map[string]string{
		"https://s3.example.com":        "https://s3.example.com",
		"HTTPS://S3.Example.com/":       "https://s3.example.com",
		"https://s3.example.com:443":    "https://s3.example.com",
		"http://s3.example.com:80/":     "http://s3.example.com",
		"http://s3.example.com:443":     "http://s3.example.com:443",
		"http://[2001:DB8::1]:9000":     "http://[2001:db8::1]:9000",
		"http://[::1]:80":               "http://[::1]",
		"http://10.0.0.1:8080":          "http://10.0.0.1:8080",
		"https://s3.example.com:4430":   "https://s3.example.com:4430",
		"https://s3.example.com:443443": "https://s3.example.com:443443",
	} {
		g := NewWithT(t)
		parsed, ok := Parse(server)
		g.Expect(ok).To(BeTrue(), server)
		g.Expect(parsed).To(Equal(form))
		g.Expect(NormalizeURL(server)).To(Equal(form))
		again, _ := Parse(form)
		g.Expect(again).To(Equal(form), "the form is its own form")
	}
	for _, server := range []string{
		"", "s3.example.com", "ftp://s3.example.com", "https://", "https://s3.example.com/bucket", "https://s3.example.com?x=y",
		"https://user@s3.example.com", "https://user:pass@s3.example.com", "https://s3.example.com#x", "https://s3.example.com:",
		"https://s3.example.com/%2e", "https:s3.example.com", "https://s3.example.com\\@evil",
	} {
		g := NewWithT(t)
		_, ok := Parse(server)
		g.Expect(ok).To(BeFalse(), server)
		g.Expect(NormalizeURL(server)).To(Equal(server))
	}
}
