package webhook

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

var today = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// verify fails the test unless a client that trusts the CA accepts the certificate for the host.
func verify(g Gomega, data map[string][]byte, host string, at time.Time) {
	pair, err := tls.X509KeyPair(data[servingCert], data[servingKey])
	g.Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM(data[caCert])).To(BeTrue())
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: at})
	g.Expect(err).NotTo(HaveOccurred())
}

func TestCertificatesAreRenewed(t *testing.T) {
	hosts := []string{"tideline-webhook.tideline-system.svc", "localhost"}
	first, err := renewExpiring(nil, hosts, today)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred(), "there were none")
	for _, host := range hosts {
		verify(g, first, host, today.Add(-30*time.Minute))
	}
	with := func(key string, value []byte) map[string][]byte {
		data := maps.Clone(first)
		data[key] = value
		return data
	}
	for name, c := range map[string]struct {
		data          map[string][]byte
		hosts         []string
		at            time.Time
		renewed, same bool // whether anything is renewed, and whether the CA stays
	}{
		"nothing":                 {data: first, hosts: hosts, at: today},
		"fewer hosts":             {data: first, hosts: hosts[:1], at: today},
		"another host":            {data: first, hosts: []string{"other"}, at: today, renewed: true, same: true},
		"no certificate":          {data: with(servingCert, nil), hosts: hosts, at: today, renewed: true, same: true},
		"another key":             {data: with(servingKey, first[caKey]), hosts: hosts, at: today, renewed: true, same: true},
		"rubbish":                 {data: with(servingCert, []byte("rubbish")), hosts: hosts, at: today, renewed: true, same: true},
		"275 days later":          {data: first, hosts: hosts, at: today.AddDate(0, 0, 274)},
		"276 days later":          {data: first, hosts: hosts, at: today.AddDate(0, 0, 276), renewed: true, same: true},
		"ten years later":         {data: first, hosts: hosts, at: today.AddDate(10, 0, 0), renewed: true},
		"no CA":                   {data: with(caCert, nil), hosts: hosts, at: today, renewed: true},
		"another key of the CA":   {data: with(caKey, first[servingKey]), hosts: hosts, at: today, renewed: true},
		"a CA that is rubbish":    {data: with(caCert, []byte("rubbish")), hosts: hosts, at: today, renewed: true},
		"a Secret without a word": {data: map[string][]byte{}, hosts: hosts, at: today, renewed: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			made, err := renewExpiring(c.data, c.hosts, c.at)
			g.Expect(err).NotTo(HaveOccurred())
			if !c.renewed {
				g.Expect(made).To(BeNil(), "nothing is made")
			} else {
				g.Expect(bytes.Equal(made[caCert], first[caCert])).To(Equal(c.same), "the CA stays while it can")
				verify(g, made, c.hosts[0], c.at)
			}
		})
	}
	_, err = renewExpiring(nil, nil, today)
	g.Expect(err).To(MatchError(ContainSubstring("no webhook is configured")))
}

func TestCertificateLivesAYear(t *testing.T) {
	g := NewWithT(t)
	made, err := renewExpiring(nil, []string{"localhost"}, today)
	g.Expect(err).NotTo(HaveOccurred())
	for key, years := range map[string]int{servingCert: 1, caCert: 10} {
		block, _ := pem.Decode(made[key])
		cert, err := x509.ParseCertificate(block.Bytes)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cert.NotAfter).To(BeTemporally("~", today.AddDate(years, 0, 0), 3*24*time.Hour), key)
	}
}

func TestHostIsWhereTheAPIServerCalls(t *testing.T) {
	g := NewWithT(t)
	service := &admissionregistrationv1.ServiceReference{Namespace: "tideline-system", Name: "tideline-webhook"}
	for want, config := range map[string]admissionregistrationv1.WebhookClientConfig{
		"tideline-webhook.tideline-system.svc": {Service: service},
		"localhost":                            {URL: ptr.To("https://localhost:9443/path")},
	} {
		g.Expect(hostOf(&config)).To(Equal(want))
	}
}
