package modelstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"github.com/tideline-io/tideline/internal/platform/serverurl"
)

const (
	tries       = 2
	backoff     = 500 * time.Millisecond
	dialTimeout = 5 * time.Second
	// answerTimeout is for the first byte of an answer, so that a second try has time as well within the 30 s of an observation.
	answerTimeout = 12 * time.Second
	// defaultRegion is what servers other than AWS's own expect in signatures when they were told no region.
	defaultRegion = "us-east-1"
	// serverPage is the most that a server lists at once.
	serverPage = 1000
	// localPage is how many files of a directory are read at once. fileblob walks the whole directory for every page.
	localPage = 1 << 17
)

// store is an open bucket.
type store struct {
	bucket *blob.Bucket
	local  string // directory of a local one, else empty
	close  func()
}

// object is one entry of a list.
type object struct {
	key      string
	modified time.Time
	folder   bool
}

func openStore(ctx context.Context, p Policy, l Location, c Credentials) (*store, error) {
	if l.Type == TypeFile {
		directory, err := p.resolveDirectory(l)
		if err != nil {
			return nil, err
		}
		bucket, err := fileblob.OpenBucket(directory, nil)
		if err != nil {
			return nil, err
		}
		return &store{bucket: bucket, local: directory, close: func() { _ = bucket.Close() }}, nil
	}
	if c.reveal == nil {
		return nil, refuse(Forbidden, "%s needs credentials: name their Secret in spec.store.s3.credentialsRef", l.describeBucket())
	}
	transport := newTransport()
	bucket, err := s3blob.OpenBucket(ctx, newClient(l, c, transport), l.Bucket, nil)
	if err != nil {
		return nil, err
	}
	return &store{bucket: bucket, close: func() {
		_ = bucket.Close()
		transport.CloseIdleConnections()
	}}, nil
}

// newClient makes a client from nothing but its arguments: what the SDK would load by itself, from environment, files or the
// metadata service of a cloud, is the operator's and not the user's.
func newClient(l Location, c Credentials, transport http.RoundTripper) *s3.Client {
	k := c.reveal()
	options := s3.Options{
		Region:      l.Region,
		Credentials: credentials.NewStaticCredentialsProvider(k.id, k.secret, k.token),
		HTTPClient: &http.Client{
			Transport: transport,
			// A redirect would lead around the list of allowed endpoints.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = tries
			o.MaxBackoff = backoff
			o.RateLimiter = ratelimit.None
		}),
	}
	if l.Endpoint != "" {
		options.BaseEndpoint = aws.String(serverurl.NormalizeURL(l.Endpoint))
		options.UsePathStyle = true
		if l.Region == "" {
			options.Region = defaultRegion
		}
	}
	return s3.New(options)
}

// newTransport takes a proxy from the environment of the operator (HTTPS_PROXY, NO_PROXY), because many can reach AWS through one
// only. The administrator who sets them decides where requests go. The signature in a request is valid for that request only.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: answerTimeout,
		MaxIdleConnsPerHost:   lookers,
		ForceAttemptHTTP2:     true,
	}
}

// eachObject visits what begins with prefix, in the order of keys. With a delimiter, what has it further on is one folder.
// After, if it is not empty, is a key that S3 servers are asked to begin behind; visit must expect keys before it all the
// same.
func (s *store) eachObject(ctx context.Context, prefix, delimiter, after string, visit func(object) error) error {
	if s.local != "" {
		return s.eachFile(ctx, prefix, delimiter, visit)
	}
	options := &blob.ListOptions{Prefix: prefix, Delimiter: delimiter, BeforeList: func(as func(any) bool) error {
		var input *s3.ListObjectsV2Input
		if as(&input) && after != "" && input.ContinuationToken == nil {
			input.StartAfter = aws.String(after)
		}
		return nil
	}}
	return s.eachPage(ctx, serverPage, options, func(listed *blob.ListObject) error {
		// The key as the store has it: gocloud's own has undone what looks like one of its escapes.
		o := object{key: listed.Key, modified: listed.ModTime, folder: listed.IsDir}
		var raw types.Object
		if listed.As(&raw) {
			o.key = aws.ToString(raw.Key)
		}
		return visit(o)
	})
}

// eachFile sorts, because fileblob lists files by directories: a/b before a-b. It also passes over what it cannot read, as if
// that were empty.
func (s *store) eachFile(ctx context.Context, prefix, delimiter string, visit func(object) error) error {
	switch folder, err := os.Open(filepath.Join(s.local, prefix)); {
	case err == nil:
		_ = folder.Close()
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	var objects []object
	options := &blob.ListOptions{Prefix: prefix, Delimiter: delimiter}
	if err := s.eachPage(ctx, localPage, options, func(o *blob.ListObject) error {
		objects = append(objects, object{key: o.Key, modified: o.ModTime, folder: o.IsDir})
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(objects, func(a, b object) int { return strings.Compare(a.key, b.key) })
	for _, o := range objects {
		if err := visit(o); err != nil {
			return err
		}
	}
	return nil
}

// eachPage visits all entries of a list. It does not use blob.ListIterator, which ends with io.EOF: a connection that the
// server has closed returns the same error, and a list that was cut off would look complete.
func (s *store) eachPage(ctx context.Context, size int, options *blob.ListOptions, visit func(*blob.ListObject) error) error {
	for token := blob.FirstPageToken; len(token) > 0; {
		if err := ctx.Err(); err != nil {
			return err // fileblob does not look at it
		}
		page, following, err := s.fetchPage(ctx, token, size, options)
		if err != nil {
			return err
		}
		for _, o := range page {
			if err := visit(o); err != nil {
				return err
			}
		}
		token = following
	}
	return nil
}

// fetchPage is blob.ListPage, which panics if a server sends an object without its time.
func (s *store) fetchPage(ctx context.Context, token []byte, size int, options *blob.ListOptions) (
	page []*blob.ListObject, following []byte, err error,
) {
	defer func() {
		if recover() != nil {
			err = refuse(Refused, "the store's list of objects lacks fields that S3 requires: correct the endpoint")
		}
	}()
	return s.bucket.ListPage(ctx, token, size, options)
}

// modifiedTime returns when an object was written, by the store's clock; false if it does not exist.
func (s *store) modifiedTime(ctx context.Context, key string) (time.Time, bool, error) {
	attributes, err := s.bucket.Attributes(ctx, key)
	switch {
	case err == nil:
		return attributes.ModTime, true, nil
	case gcerrors.Code(err) == gcerrors.NotFound:
		return time.Time{}, false, nil
	}
	return time.Time{}, false, fmt.Errorf("look for %s: %w", key, err)
}
