package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"github.com/tideline-io/tideline/internal/platform/serverurl"
)

var (
	errNoStartTLS       = errors.New("no STARTTLS")
	errNoAuthentication = errors.New("no authentication")
)

// loginError is one of authentication.
type loginError struct{ error }

func (e loginError) Unwrap() error { return e.error }

// openSession connects to the server, secures the connection, and authenticates. end closes it in any case. The end of the
// context interrupts any wait for the server.
func (s Server) openSession(ctx context.Context) (client *smtp.Client, end func(), err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.String())
	if err != nil {
		return nil, func() {}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	end = func() {
		stop()
		_ = conn.Close()
	}
	client, err = s.beginSession(ctx, conn)
	return client, end, err
}

// beginSession begins a session on a connection.
func (s Server) beginSession(ctx context.Context, conn net.Conn) (*smtp.Client, error) {
	if s.encryption == implicitTLS {
		secured := tls.Client(conn, s.tlsConfig())
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secured
	}
	client, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return nil, err
	}
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	if err := client.Hello(name); err != nil {
		return nil, err
	}
	if s.encryption == startTLS {
		if offered, _ := client.Extension("STARTTLS"); !offered {
			return nil, errNoStartTLS
		}
		if err := client.StartTLS(s.tlsConfig()); err != nil {
			return nil, err
		}
	}
	if s.username == "" {
		return client, nil
	}
	_, offered := client.Extension("AUTH")
	if err := s.logIn(client, strings.Fields(offered)); err != nil {
		return nil, loginError{err}
	}
	return client, nil
}

// logIn authenticates by the best of the ways that the server offers. The connection has TLS.
func (s Server) logIn(client *smtp.Client, offered []string) error {
	for _, way := range []struct {
		name string
		auth func() smtp.Auth
	}{
		{"SCRAM-SHA-256", func() smtp.Auth { return smtp.ScramSHA256Auth(s.username, s.password) }},
		{"SCRAM-SHA-1", func() smtp.Auth { return smtp.ScramSHA1Auth(s.username, s.password) }},
		{"PLAIN", func() smtp.Auth { return smtp.PlainAuth("", s.username, s.password, s.host, false) }},
		{"LOGIN", func() smtp.Auth { return smtp.LoginAuth(s.username, s.password, s.host, false) }},
	} {
		if slices.Contains(offered, way.name) {
			return client.Auth(way.auth())
		}
	}
	return errNoAuthentication
}

// explainOpening says why there is no way to a server. Of what a server says about a password it repeats the number only.
func (s Server) explainOpening(ctx context.Context, err error) error {
	var answer *textproto.Error
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var login loginError
	replied, loggingIn := errors.As(err, &answer), errors.As(err, &login)
	switch {
	case errors.As(err, &certificate):
		return fmt.Errorf("%w: the operator does not trust the certificate of %s (%s): correct key %s or %s of the Secret, or "+
			"the server",
			ErrSettings, s, clip(certificate.Err.Error()), keyHost, keyCA)
	case errors.As(err, &record):
		return fmt.Errorf("%w: %s does not begin with TLS: correct key %s or %s of the Secret", ErrSettings, s, keyTLS, keyPort)
	case errors.Is(err, errNoStartTLS):
		return fmt.Errorf("%w: %s offers no STARTTLS, which is required: set key %s of the Secret to TLS, or correct "+
			"the server", ErrSettings, s, keyTLS)
	case errors.Is(err, errNoAuthentication):
		return fmt.Errorf("%w: %s offers none of SCRAM, PLAIN and LOGIN: leave out keys %s and %s of the Secret, or correct the "+
			"server", ErrSettings, s, keyUsername, keyPassword)
	case loggingIn && replied && answer.Code/100 == permanent:
		return fmt.Errorf("%w: %s does not accept the user or the password (%d): correct keys %s and %s of the Secret",
			ErrSettings, s, answer.Code, keyUsername, keyPassword)
	case replied:
		return fmt.Errorf("%w: %s answers %d%s", ErrUnreachable, s, answer.Code, timeoutNote(ctx))
	case loggingIn:
		return fmt.Errorf("%w: %s ended the connection while the user was to be accepted%s", ErrUnreachable, s, timeoutNote(ctx))
	}
	return fmt.Errorf("%w: %s: %s%s", ErrUnreachable, s, clip(serverurl.DescribeError(err)), timeoutNote(ctx))
}
