// Package post is a server for mail that keeps what it takes: with STARTTLS, a certificate of an authority of its own, and
// passwords.
package post

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Password of user tideline, with characters that are more than a byte or mean something elsewhere.
const Password = "s3cr3t+/=ünd"

// From is the only sender whose mails are taken.
const From = "tideline@example.com"

// Server keeps mails until it is closed.
type Server struct {
	// Secret is the data of a Secret that names it.
	Secret map[string][]byte

	options Options
	server  *smtp.Server
	listens net.Listener
	served  chan error

	mu sync.Mutex
	// logins counts who came with a password.
	logins int
	// mails by recipient, in the order in which they came.
	mails  map[string][]string
	refuse map[string]Reply
	silent <-chan struct{}
	// held is closed when what is held is answered; left are the mails until then.
	held chan struct{}
	left int

	certificate tls.Certificate
}

// Reply is a refusal.
type Reply struct {
	// Code of SMTP, from 400 to 599.
	Code int
	// Message in one line.
	Message string
}

func (r Reply) err() error { return &smtp.SMTPError{Code: r.Code, Message: r.Message} }

// Options are what it does otherwise than by default.
type Options struct {
	// Implicit TLS from the first byte, or Plain for none at all. Default: STARTTLS.
	Implicit, Plain bool
	// Open to everybody, without a password.
	Open bool
	// Mechanisms to authenticate by. Default: PLAIN.
	Mechanisms []string
	// Silent has it answer no content before it is closed; nil for at once. Taken has it keep those mails nevertheless.
	Silent <-chan struct{}
	Taken  bool
	// Addressed is called when a mail has a recipient, Kept when it is kept and not yet answered; nil for nothing.
	Addressed, Kept func(to string)
	// HangsUp has it end the connection when it has a mail.
	HangsUp bool
}

// Serve starts a server on the loopback address.
func Serve(ctx context.Context, o Options) (*Server, error) {
	certificate, authority, err := certify()
	if err != nil {
		return nil, err
	}
	return serve(ctx, o, "127.0.0.1:0", certificate, authority)
}

// Again starts one that was closed, at the same address, with its certificate and without its mails.
func (p *Server) Again(ctx context.Context) (*Server, error) {
	at := net.JoinHostPort(string(p.Secret["host"]), string(p.Secret["port"]))
	return serve(ctx, p.options, at, p.certificate, p.Secret["caCertificate"])
}

func serve(ctx context.Context, o Options, at string, certificate tls.Certificate, authority []byte) (*Server, error) {
	if o.Mechanisms == nil {
		o.Mechanisms = []string{sasl.Plain}
	}
	p := &Server{
		options: o, mails: map[string][]string{}, silent: o.Silent, served: make(chan error, 1), certificate: certificate,
	}
	p.server = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{Server: p, conn: c}, nil
	}))
	p.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	p.server.Domain, p.server.ErrorLog = "localhost", quiet{}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("listen for mail: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	p.Secret = map[string][]byte{
		"host": []byte("127.0.0.1"), "port": []byte(port), "username": []byte("tideline"), "password": []byte(Password),
		"caCertificate": authority,
	}
	if o.Plain {
		p.server.TLSConfig = nil
	}
	if o.Implicit {
		listener = tls.NewListener(listener, p.server.TLSConfig)
	}
	p.listens = listener
	go func() { p.served <- p.server.Serve(listener) }()
	return p, nil
}

// Close ends it.
func (p *Server) Close() {
	_ = p.server.Close()
	_ = p.listens.Close() // The server does not know of it yet if it is closed at once.
	<-p.served
}

// Got is how many mails each recipient has.
func (p *Server) Got() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[string]int{}
	for to, mails := range p.mails {
		n[to] = len(mails)
	}
	return n
}

// Logins is how often somebody came with a password.
func (p *Server) Logins() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.logins
}

// Mails are those of a recipient, in the order in which they came.
func (p *Server) Mails(to string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mails[to])
}

// Refuse has it reply so to recipients; the one of "" is to the content of each mail. Nil for none.
func (p *Server) Refuse(replies map[string]Reply) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = replies
}

// Hold has it take n more mails, the last of which it does not answer, nor any after that, until it is told to.
func (p *Server) Hold(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.left = make(chan struct{}), n
}

// Answer has it be silent no more.
func (p *Server) Answer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = nil
	if p.held != nil {
		close(p.held)
		p.held, p.left = nil, 0
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

func certify() (certificate tls.Certificate, authority []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certificate, nil, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return certificate, nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), nil
}

// session is that of one connection.
type session struct {
	*Server
	conn *smtp.Conn
	in   bool
	to   string
}

// AuthMechanisms are those that are offered.
func (s *session) AuthMechanisms() []string { return s.options.Mechanisms }

// Auth checks a password.
func (s *session) Auth(string) (sasl.Server, error) {
	s.mu.Lock()
	s.logins++
	s.mu.Unlock()
	return sasl.NewPlainServer(func(_, username, password string) error {
		if s.in = username == "tideline" && password == Password; !s.in {
			return &smtp.SMTPError{Code: 535, Message: "no such password: " + password}
		}
		return nil
	}), nil
}

// Mail takes the sender.
func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	switch {
	case !s.in && !s.options.Open:
		return &smtp.SMTPError{Code: 530, Message: "authenticate first"}
	case from != From:
		return &smtp.SMTPError{Code: 553, Message: "not yours"}
	}
	return nil
}

// Rcpt takes a recipient.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mu.Lock()
	s.to = to
	reply, refused := s.refuse[to]
	s.mu.Unlock()
	if refused {
		return reply.err()
	}
	if s.options.Addressed != nil {
		s.options.Addressed(to)
	}
	return nil
}

// Data takes the content of a mail.
func (s *session) Data(r io.Reader) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	reply, refused := s.refuse[""]
	kept := !refused && (s.silent == nil || s.options.Taken)
	if kept {
		s.mails[s.to] = append(s.mails[s.to], string(content))
		if s.left--; s.left == 0 {
			s.silent = s.held
		}
	}
	silent := s.silent
	s.mu.Unlock()
	if kept && s.options.Kept != nil {
		s.options.Kept(s.to)
	}
	if s.options.HangsUp {
		_ = s.conn.Conn().Close()
	}
	if silent != nil {
		<-silent
		return errors.New("too late")
	}
	if refused {
		return reply.err()
	}
	return nil
}

// Reset forgets nothing.
func (s *session) Reset() {}

// Logout ends nothing.
func (s *session) Logout() error { return nil }

// Parts are what a mail has: its header, the text of each media type, and the type of each part that has a name or an id.
func Parts(content string) (mail.Header, map[string]string, error) {
	m, err := mail.ReadMessage(strings.NewReader(content))
	if err != nil {
		return nil, nil, fmt.Errorf("read the mail: %w", err)
	}
	found := map[string]string{}
	return m.Header, found, walk(m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"), m.Body, found)
}

func walk(contentType, encoding string, r io.Reader, found map[string]string) error {
	kind, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		return fmt.Errorf("read the type of a part: %w", err)
	}
	if strings.HasPrefix(kind, "multipart/") {
		for inner := multipart.NewReader(r, parameters["boundary"]); ; {
			part, err := inner.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read a part: %w", err)
			}
			of := part.Header
			found[of.Get("Content-Id")+part.FileName()] = of.Get("Content-Type")
			if err := walk(of.Get("Content-Type"), of.Get("Content-Transfer-Encoding"), part, found); err != nil {
				return err
			}
		}
	}
	switch encoding {
	case "base64":
		r = base64.NewDecoder(base64.StdEncoding, r)
	case "quoted-printable":
		r = quotedprintable.NewReader(r)
	}
	body, err := io.ReadAll(r)
	found[kind] = strings.ReplaceAll(string(body), "\r\n", "\n")
	return err
}
