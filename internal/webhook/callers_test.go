package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
)

// signed is a certificate that another signed, or itself, with its key.
func signed(g Gomega, name string, by *tls.Certificate) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		IsCA:        by == nil, BasicConstraintsValid: true,
	}
	parent, signer := template, any(key)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	content, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	g.Expect(err).NotTo(HaveOccurred())
	leaf, err := x509.ParseCertificate(content)
	g.Expect(err).NotTo(HaveOccurred())
	return tls.Certificate{Certificate: [][]byte{content}, PrivateKey: key, Leaf: leaf}
}

// With an authority set, no review of a caller without its certificate is read.
func TestLargeReviewsThatWaitDoNotHoldUpSmallOnes(t *testing.T) {
	g := NewWithT(t)
	const large = 1 << 20
	leave := make(chan struct{})
	var waiting atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ContentLength == large {
			waiting.Add(1)
			<-leave // It is not read before there is memory for it.
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	separateReviews(server.TLS)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	caller := server.Client() // It speaks HTTP/2 where the server does, as API servers do.
	send := func(length int) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(strings.Repeat("x", length)))
		if err != nil {
			return err
		}
		response, err := caller.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	var all errgroup.Group
	for range 8 {
		all.Go(func() error { return send(large) })
	}
	g.Eventually(waiting.Load).WithTimeout(10 * time.Second).Should(BeEquivalentTo(8))
	g.Expect(send(4<<10)).To(Succeed(), "a small one arrives meanwhile")
	close(leave)
	g.Expect(all.Wait()).To(Succeed())
}

func TestCallersNeedACertificate(t *testing.T) {
	g := NewWithT(t)
	authority, stranger := signed(g, "authority", nil), signed(g, "stranger", nil)
	file := filepath.Join(t.TempDir(), "ca.crt")
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate[0]})
	g.Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
	require, err := requireClients(file)
	g.Expect(err).NotTo(HaveOccurred())
	read := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { read++ }))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	require(server.TLS)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	for name, c := range map[string]struct {
		with    []tls.Certificate
		answers bool
	}{
		"none":             {nil, false},
		"a stranger's own": {[]tls.Certificate{stranger}, false},
		"by a stranger":    {[]tls.Certificate{signed(g, "apiserver", &stranger)}, false},
		"the API server's": {[]tls.Certificate{signed(g, "apiserver", &authority)}, true},
	} {
		caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs: roots, GetClientCertificate: whatever(c.with), MinVersion: tls.VersionTLS12,
		}}}
		read = 0
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := caller.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if answers := err == nil && read == 1; answers != c.answers || read > 1 {
			t.Errorf("%s: answered %t (%v), read %d", name, answers, err, read)
		}
		caller.CloseIdleConnections()
	}
}

// whatever sends a certificate although the server names other authorities.
func whatever(with []tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if len(with) == 0 {
			return &tls.Certificate{}, nil
		}
		return &with[0], nil
	}
}

func TestAuthoritiesOfCallersAreRead(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	_, err := requireClients(file)
	g.Expect(err).To(MatchError(MatchRegexp(`^webhooks\.clientCAFile: open .*ca.crt: no such file or directory: mount the file`)))
	g.Expect(os.WriteFile(file, []byte("no certificate"), 0o600)).To(Succeed())
	_, err = requireClients(file)
	g.Expect(err).To(MatchError(ContainSubstring("ca.crt contains no PEM certificate: write the")))
}

func TestOnceReadyIsNotAskedAgain(t *testing.T) {
	g := NewWithT(t)
	asked, answer := 0, errors.New("not yet")
	check := latchHealthy(func(*http.Request) error { asked++; return answer })
	g.Expect(check(nil)).To(MatchError("not yet"))
	answer = nil
	g.Expect(check(nil)).To(Succeed())
	answer = errors.New("gone")
	g.Expect(check(nil)).To(Succeed())
	g.Expect(asked).To(Equal(2))
}
