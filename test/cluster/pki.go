package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"time"
)

// validity of every certificate: longer than any cluster lives.
const validity = 365 * 24 * time.Hour

// An authority issues the certificates of one cluster.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

func newAuthority() (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := certificate(pkix.Name{CommonName: "tideline-local-cluster"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, pem: pemBlock("CERTIFICATE", der)}, nil
}

// client issues a certificate by which the API server knows a user.
func (a *authority) client(user string, groups ...string) (cert, key []byte, err error) {
	template := certificate(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(template)
}

// server issues a certificate for this host and the given DNS names.
func (a *authority) server(names ...string) (cert, key []byte, err error) {
	template := certificate(pkix.Name{CommonName: "localhost"})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = append([]string{"localhost"}, names...)
	// Pods reach the API server by the first address of the range of Services, where a node forwards it.
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (certPEM, keyPEM []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyBlock(key)
	return pemBlock("CERTIFICATE", der), keyPEM, err
}

func certificate(name pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetInt64(now.UnixNano()),
		Subject:      name,
		NotBefore:    now.Add(-24 * time.Hour), // a clock that is set back by hours must not stop the cluster
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func keyBlock(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pemBlock("EC PRIVATE KEY", der), nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// keyFiles are the files that the processes read, in one folder.
type keyFiles struct {
	ca                          string // certificate of the authority
	apiServerCert, apiServerKey string
	kubeletCert, kubeletKey     string // by which kubelets know the API server
	webhookCert, webhookKey     string
	serviceAccountKey           string // signs the tokens of service accounts
}

func (a *authority) writeKeyFiles(dir string) (keyFiles, error) {
	f := keyFiles{
		ca:                filepath.Join(dir, "ca.crt"),
		apiServerCert:     filepath.Join(dir, "apiserver.crt"),
		apiServerKey:      filepath.Join(dir, "apiserver.key"),
		kubeletCert:       filepath.Join(dir, "apiserver-kubelet.crt"),
		kubeletKey:        filepath.Join(dir, "apiserver-kubelet.key"),
		webhookCert:       filepath.Join(dir, "webhook.crt"),
		webhookKey:        filepath.Join(dir, "webhook.key"),
		serviceAccountKey: filepath.Join(dir, "service-account.key"),
	}
	apiCert, apiKey, err := a.server("kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return f, err
	}
	kubeletCert, kubeletKey, err := a.client("kube-apiserver")
	if err != nil {
		return f, err
	}
	webhookCert, webhookKey, err := a.server()
	if err != nil {
		return f, err
	}
	key, err := newKey()
	if err != nil {
		return f, err
	}
	saKey, err := keyBlock(key)
	if err != nil {
		return f, err
	}
	for name, content := range map[string][]byte{
		f.ca:                a.pem,
		f.apiServerCert:     apiCert,
		f.apiServerKey:      apiKey,
		f.kubeletCert:       kubeletCert,
		f.kubeletKey:        kubeletKey,
		f.webhookCert:       webhookCert,
		f.webhookKey:        webhookKey,
		f.serviceAccountKey: saKey,
	} {
		if err := writeFile(name, content, 0o600); err != nil {
			return f, err
		}
	}
	return f, nil
}
