// Package mail delivers reports by SMTP: each to its recipient once per period, also if the operator ends in between.
// Package delivery decides what is sent when.
package mail

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

// defaultPort is that of submission, RFC 6409.
const defaultPort = 587

// Keys of the Secret that names the server.
const (
	keyHost     = "host"
	keyPort     = "port"
	keyUsername = "username"
	keyPassword = "password"
	keyTLS      = "tls"
	keyCA       = "caCertificate"
)

// encryption is how the way to the server is protected.
type encryption string

const (
	// startTLS is demanded after the greeting: without it nothing is sent.
	startTLS encryption = "STARTTLS"
	// implicitTLS is there from the first byte.
	implicitTLS encryption = "TLS"
	// plain has no encryption.
	plain encryption = "None"
)

// Server takes mails, as the platform's own Secret says. It is made by [ParseServer].
type Server struct {
	// Timeout bounds one mail. It is not of the Secret.
	Timeout time.Duration

	host               string
	port               int
	username, password string
	encryption         encryption
	// authorities that may have signed its certificate; nil for those of the system.
	authorities *x509.CertPool
}

// String names the server without its credentials.
func (s Server) String() string { return net.JoinHostPort(s.host, strconv.Itoa(s.port)) }

// GoString keeps the password out of what is printed of a server.
func (s Server) GoString() string { return s.String() }

// ParseServer reads the data of a Secret: host, port (587), username and password, tls (STARTTLS by default, which is then
// demanded; TLS from the first byte on; None only if allowPlain, and without a password), caCertificate in PEM. Its error names
// every key that is wrong, and quotes neither name nor password.
func ParseServer(data map[string][]byte, allowPlain bool) (Server, error) {
	value := func(key string) string { return strings.TrimSpace(string(data[key])) }
	s := Server{
		host: value(keyHost), port: defaultPort, username: value(keyUsername),
		password: strings.TrimRight(string(data[keyPassword]), "\r\n"), encryption: startTLS,
	}
	var wrong []error
	refuse := func(key, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("key "+key+" of the Secret "+format, args...))
	}
	if net.ParseIP(s.host) == nil && len(validation.IsDNS1123Subdomain(strings.ToLower(s.host))) > 0 {
		refuse(keyHost, "is not the name or the address of a server: write it without scheme and port, as in smtp.example.com")
	}
	if text := value(keyPort); text != "" {
		var err error
		if s.port, err = strconv.Atoi(text); err != nil || s.port < 1 || s.port > 65535 {
			refuse(keyPort, "is not a port: write a number from 1 to 65535, or leave it out for %d", defaultPort)
		}
	}
	if text := value(keyTLS); text != "" {
		s.encryption = encryption(text)
	}
	switch {
	case !slices.Contains([]encryption{startTLS, implicitTLS, plain}, s.encryption):
		refuse(keyTLS, "must be STARTTLS, TLS or None: write one of them, or leave it out for STARTTLS")
	case s.encryption == plain && !allowPlain:
		refuse(keyTLS, "is None, which the operator's configuration does not allow: use STARTTLS or TLS")
	case s.encryption == plain && s.username != "":
		refuse(keyTLS, "is None, which would send the password unencrypted: use STARTTLS or TLS, or leave username and password out")
	}
	switch {
	case (s.username == "") != (s.password == ""):
		refuse(keyPassword, "and key %s belong together: set both, or neither for a server without login", keyUsername)
	case strings.ContainsFunc(s.username+s.password, unicode.IsControl):
		refuse(keyPassword, "or key %s has a control character: write each as one line of text", keyUsername)
	}
	if len(data[keyCA]) > 0 {
		s.authorities = x509.NewCertPool()
		if !s.authorities.AppendCertsFromPEM(data[keyCA]) {
			refuse(keyCA, "has no certificate: write one or more in PEM, beginning with -----BEGIN CERTIFICATE-----")
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return Server{}, err
	}
	return s, nil
}

// tlsConfig is how the server is to prove who it is.
func (s Server) tlsConfig() *tls.Config {
	return &tls.Config{ServerName: s.host, RootCAs: s.authorities, MinVersion: tls.VersionTLS12}
}
