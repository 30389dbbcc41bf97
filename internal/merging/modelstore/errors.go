package modelstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tideline-io/tideline/internal/platform/serverurl"
	"github.com/tideline-io/tideline/internal/platform/text"
)

// Reason is why a store cannot be read, in one word.
type Reason string

const (
	// Forbidden: the store does not accept the credentials, or they may not do what is needed.
	Forbidden Reason = "Forbidden"
	// BucketNotFound: there is no such bucket, or no such directory.
	BucketNotFound Reason = "BucketNotFound"
	// Unreachable: no answer, or one that says that the store is in trouble. It may be gone in a moment.
	Unreachable Reason = "Unreachable"
	// EndpointNotAllowed: the operator's configuration does not allow the server.
	EndpointNotAllowed Reason = "EndpointNotAllowed"
	// StoreTypeNotAllowed: the operator's configuration does not allow the type, or not this directory.
	StoreTypeNotAllowed Reason = "StoreTypeNotAllowed"
	// ReportInvalid: the report of a store does not say what it must.
	ReportInvalid Reason = "ReportInvalid"
	// Invalid: the location, or a name in the store, is not what it must be.
	Invalid Reason = "Invalid"
	// Refused: the store gave another answer that ends it, for example that the bucket is in another region.
	Refused Reason = "Refused"
)

// Error says for users why a store cannot be read. It contains no key and no signature, and nothing that the server sent
// except its error code. It wraps an error of the network or of a context, never an answer of the store.
type Error struct {
	Reason  Reason
	Message string
	cause   error
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.cause }

func refuse(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// quoteClipped quotes what a user wrote, in one line and at most 128 bytes of it.
func quoteClipped(s string) string {
	const most = 128
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(text.SingleLine(s))
}

// codePattern is the form of error codes. Anything else that a server sends as a code is not repeated to users.
var codePattern = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)

// explainFailure turns an error of reading a store into an *Error. A cancelled context says nothing about the store, so its
// error is kept.
func explainFailure(ctx context.Context, err error, l Location) error {
	var own *Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("read %s: %w", l.describeBucket(), ctx.Err())
	case ctx.Err() != nil:
		return &Error{Unreachable, l.describeBucket() + " did not answer in time: check that the store is up; Tideline tries again",
			ctx.Err()}
	case l.Type == TypeFile:
		return explainFile(err, l)
	}
	var response *awshttp.ResponseError
	var broken net.Error
	if errors.As(err, &broken) || errors.Is(err, io.ErrUnexpectedEOF) {
		return explainSilence(err, l)
	}
	if !errors.As(err, &response) || response.Response == nil || response.Response.Response == nil {
		return explainSilence(err, l)
	}
	code := ""
	var api smithy.APIError
	if errors.As(err, &api) && codePattern.MatchString(api.ErrorCode()) {
		code = api.ErrorCode()
	}
	return explainAnswer(response.HTTPStatusCode(), code, l)
}

func explainAnswer(status int, code string, l Location) *Error {
	said := strconv.Itoa(status)
	if code != "" {
		said += " " + code
	}
	said = "HTTP " + said
	switch {
	case code == "RequestTimeTooSkewed":
		return refuse(Forbidden, "%s refuses requests because its clock and the operator's differ too much (%s): "+
			"correct them", l.describeBucket(), said)
	case status == http.StatusUnauthorized, status == http.StatusForbidden, code == "ExpiredToken", code == "InvalidToken",
		code == "XAdminUserNotFound": // versitygw's words for an unknown key, with status 404
		return refuse(Forbidden, "the credentials do not give access to %s (%s): correct the keys in the Secret, "+
			"or allow them to list the bucket and read its markers", l.describeBucket(), said)
	case status == http.StatusNotFound && (code == "NoSuchBucket" || code == "NotFound" || code == ""):
		return refuse(BucketNotFound, "the store has no %s (%s): correct bucket, region or endpoint, or create it",
			l.describeBucket()[len("the "):], said)
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests,
		status == http.StatusRequestTimeout, code == "RequestTimeout", code == "SlowDown":
		return refuse(Unreachable, "%s answers with a server error (%s): check that the store is up; Tideline tries again",
			l.describeBucket(), said)
	case status >= 300 && status < 400, code == "AuthorizationHeaderMalformed":
		return refuse(Refused, "%s is at another address (%s), and Tideline does not follow redirects: correct region and endpoint",
			l.describeBucket(), said)
	case status < 300:
		return refuse(Refused, "%s did not answer as S3 does (%s): correct the endpoint", l.describeBucket(), said)
	}
	return refuse(Refused, "%s refused the request (%s): correct bucket, region and endpoint", l.describeBucket(), said)
}

// explainSilence is for requests without an answer.
func explainSilence(err error, l Location) *Error {
	var sent *smithyhttp.RequestSendError
	var address *url.Error
	cause := errors.New("the request could not be sent")
	switch {
	case errors.As(err, &address):
		cause = address.Err // without the URL
	case errors.As(err, &sent):
		cause = sent.Err
	}
	return &Error{Unreachable, fmt.Sprintf("Tideline cannot reach %s (%s): check that the store is up; Tideline tries again",
		l.describeBucket(), text.SingleLine(serverurl.DescribeError(cause))), cause}
}

func explainFile(err error, l Location) *Error {
	if errors.Is(err, os.ErrPermission) {
		return refuse(Forbidden, "the operator may not read %s: change its permissions", l.describeBucket())
	}
	return refuse(Unreachable, "the operator cannot read %s: check its disk; Tideline tries again", l.describeBucket())
}
