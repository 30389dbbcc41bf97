package promquery

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// mostAnswer bounds an answer, in bytes. One about a batch has some megabytes.
const mostAnswer = 64 << 20

// Client asks a Prometheus, or what answers as one.
type Client struct {
	api     v1.API
	server  string // scheme and host, for people
	timeout time.Duration
	sender  *sender
	trusted config.Trusted
}

// NewClient returns a client of the server that the operator's configuration names. The error says which file of certificates
// cannot be read. Nothing is sent yet.
func NewClient(c config.Prometheus) (*Client, error) {
	server, err := url.Parse(c.URL)
	if err != nil {
		return nil, errors.New("prometheus.url is not a URL")
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default transport of HTTP is not that of Go")
	}
	transport = transport.Clone()
	if c.CAFile != "" {
		certificates, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("prometheus.caFile: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(certificates) {
			return nil, fmt.Errorf("prometheus.caFile: %s has no certificate in PEM", c.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	s := &sender{next: transport, tokenFile: c.TokenFile, most: mostAnswer}
	client, err := api.NewClient(api.Config{Address: c.URL, Client: &http.Client{
		Transport: s,
		// Redirects are not followed: the token must reach no other server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, errors.New("prometheus.url is not a URL")
	}
	return &Client{
		api:     v1.NewAPI(client),
		server:  (&url.URL{Scheme: server.Scheme, Host: server.Host}).String(),
		timeout: config.Seconds(c.TimeoutSeconds),
		sender:  s,
		trusted: c.Trusted,
	}, nil
}

// queryRange asks a question about all slots between two times.
func (c *Client) queryRange(ctx context.Context, q Query, from, to time.Time) ([]Series, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	asked := v1.Range{Start: from, End: to, Step: slotLength}
	// Infos are remarks on how the question is put: unlike with warnings, nothing is missing in the answer.
	value, warnings, _, err := c.api.QueryRange(ctx, q.Expr, asked, v1.WithTimeout(c.timeout))
	if err != nil {
		return nil, c.explainFailure(ctx, err)
	}
	if len(warnings) > 0 {
		return nil, c.explainWarnings(warnings)
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, c.noPrometheus("it sent no matrix")
	}
	series := make([]Series, len(matrix))
	for i, stream := range matrix {
		series[i] = seriesOf(stream, q)
	}
	return series, nil
}

// seriesOf is a series as the query asked for it.
func seriesOf(stream *model.SampleStream, q Query) Series {
	label := func(name string) string { return string(stream.Metric[model.LabelName(name)]) }
	s := Series{Pod: label(exportedPrefix(q.Exported) + "pod"), Container: label("container"), Part: label("id")}
	if device := label("UUID") + "/" + label("gpu") + "/" + label("GPU_I_ID"); device != "//" {
		s.Part = device
	}
	s.Points = make([]Point, len(stream.Values))
	for i, v := range stream.Values {
		s.Points[i] = Point{At: v.Timestamp.Time(), Value: float64(v.Value)}
	}
	return s
}

// sender adds the token to requests, and bounds what is read of answers.
type sender struct {
	next      http.RoundTripper
	tokenFile string
	most      int64
	sent      atomic.Pointer[string] // the last token, which must not come back in any words
}

var (
	errToken   = errors.New("the token cannot be read")
	errTooLong = errors.New("the answer is too long")
)

// RoundTrip sends a request with the token as it is now.
func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.tokenFile != "" {
		token, err := s.readToken()
		if err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
		s.sent.Store(&token)
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &bounded{answer.Body, s.most}
	return answer, nil
}

// readToken reads the token. It is renewed while the operator runs.
func (s *sender) readToken() (string, error) {
	content, err := os.ReadFile(s.tokenFile) //nolint:gosec // the operator's own configuration names it
	if err != nil {
		return "", fmt.Errorf("%w: %w", errToken, err)
	}
	token := string(bytes.TrimSpace(content))
	if token == "" || strings.ContainsAny(token, "\r\n\x00") {
		return "", fmt.Errorf("%w: %s has none, on one line", errToken, s.tokenFile)
	}
	return token, nil
}

// bounded is the body of an answer that ends with errTooLong if there are more bytes than left.
type bounded struct {
	io.ReadCloser

	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		return n, errTooLong
	}
	return n, err
}
