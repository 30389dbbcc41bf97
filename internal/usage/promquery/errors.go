package promquery

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/tideline-io/tideline/internal/platform/serverurl"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// mostSaid bounds how much of the words of a server is repeated, in bytes.
const mostSaid = 200

// explainFailure says in words for users why a query failed.
func (c *Client) explainFailure(ctx context.Context, err error) error {
	var answer *v1.Error
	var request *url.Error
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the Prometheus at %s did not answer within %s: check its load, or raise prometheus.timeoutSeconds",
			c.server, c.timeout)
	case errors.Is(err, errTooLong):
		return fmt.Errorf("the Prometheus at %s answered with more than %d bytes: check prometheus.url",
			c.server, c.sender.most)
	case errors.As(err, &answer):
		return c.explainAnswer(answer)
	case errors.As(err, &request) && errors.Is(err, errToken):
		return fmt.Errorf("the Prometheus at %s was not asked, because %w: correct prometheus.tokenFile", c.server, request.Err)
	case errors.As(err, &request):
		return fmt.Errorf("the Prometheus at %s cannot be reached (%s): check that it is up, and that prometheus.url and "+
			"prometheus.caFile are right", c.server, c.cleanWords(serverurl.DescribeError(request.Err)))
	}
	return c.noPrometheus(err.Error())
}

// explainAnswer is for answers that say what is wrong, by their status or in words.
func (c *Client) explainAnswer(answer *v1.Error) error {
	said := c.cleanWords(string(answer.Type) + ": " + answer.Msg)
	switch {
	case answer.Type == v1.ErrClient && (strings.HasSuffix(answer.Msg, " 401") || strings.HasSuffix(answer.Msg, " 403")):
		return fmt.Errorf("the Prometheus at %s refuses the operator (%s): correct the token in prometheus.tokenFile, or give "+
			"it the right to read",
			c.server, said)
	case answer.Type == v1.ErrBadResponse:
		return c.noPrometheus(said)
	}
	return fmt.Errorf("the Prometheus at %s answered with an error (%s): check its logs", c.server, said)
}

// noPrometheus is for answers that Prometheus would not give, redirects among them.
func (c *Client) noPrometheus(said string) error {
	return fmt.Errorf("the server at %s does not answer as Prometheus does (%s): correct prometheus.url", c.server,
		c.cleanWords(said))
}

// explainWarnings rejects answers with warnings: something is missing in them, and they do not say what.
func (c *Client) explainWarnings(warnings []string) error {
	return fmt.Errorf("the Prometheus at %s answered in part only (%s): check the stores and servers behind it", c.server,
		c.cleanWords(warnings[0]))
}

// cleanWords is the text of a server on one line, shortened, and without the token that was sent to it.
func (c *Client) cleanWords(words string) string {
	if sent := c.sender.sent.Load(); sent != nil {
		words = strings.ReplaceAll(words, *sent, "[token]")
	}
	return text.ClipLine(words, mostSaid)
}
