package config

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestURLsOfPrometheus(t *testing.T) {
	for url, taken := range map[string]bool{
		"":                                       true,
		"http://prometheus":                      true,
		"http://10.0.0.1:9090":                   true,
		"https://[2001:db8::1]:9090":             true,
		"https://mimir.example/prometheus/":      true,
		"prometheus:9090":                        false,
		"ftp://prometheus":                       false,
		"https://":                               false,
		"https://:9090":                          false,
		"https://prometheus:":                    false,
		"https://alice:secret@prometheus":        false,
		"https://prometheus/@secret":             false,
		"https://prometheus/?token=secret":       false,
		"https://prometheus/#secret":             false,
		"https://prometheus/%zz":                 false,
		"https://prometheus:port":                false,
		"https://prometheus/with a\nline secret": false,
	} {
		g := NewWithT(t)
		c, err := Load("file", []byte(header+"prometheus: {url: "+quote(url)+"}\n"))
		if taken {
			g.Expect(err).NotTo(HaveOccurred(), url)
			g.Expect(c.Prometheus.URL).To(Equal(url))
			g.Expect(c.Prometheus.IsConfigured()).To(Equal(url != ""))
			continue
		}
		g.Expect(err).To(MatchError("file: prometheus.url "+noPrometheus), url)
		g.Expect(err.Error()).NotTo(ContainSubstring("secret"))
	}
}
