package modelstore

import (
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// fake is a server of one bucket, models, that lists and looks as S3 does. Who signs, and how, is not looked at.
type fake struct {
	URL string
	// answer, if set before the first request, answers instead: it returns false for what the fake shall answer.
	answer func(http.ResponseWriter, *http.Request) bool

	mu       sync.Mutex
	objects  map[string]time.Time
	requests []*http.Request
}

func newFake(t *testing.T, keys ...string) *fake {
	f := &fake{objects: map[string]time.Time{}}
	for _, key := range keys {
		f.objects[key] = noon
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.URL = server.URL
	return f
}

func (f *fake) policy() Policy { return Policy{Endpoints: []string{f.URL}} }

func (f *fake) location() Location {
	return atAWS(func(l *Location) { l.Endpoint, l.Region = f.URL, "" })
}

func (f *fake) seen() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// asked are the values of a parameter in the requests that listed what begins with prefix.
func (f *fake) asked(name, prefix string) []string {
	var asked []string
	for _, r := range f.seen() {
		if q := r.URL.Query(); r.Method == http.MethodGet && q.Get("prefix") == prefix {
			asked = append(asked, q.Get(name))
		}
	}
	return asked
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r)
	f.mu.Unlock()
	switch {
	case f.answer != nil && f.answer(w, r):
	case r.Method == http.MethodHead:
		at, ok := f.objects[strings.TrimPrefix(r.URL.Path, "/models/")]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Last-Modified", at.Format(http.TimeFormat))
	case r.URL.Path == "/models":
		f.list(w, r)
	default:
		fail(w, http.StatusNotFound, "NoSuchBucket")
	}
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>of your HIDDEN key</Message></Error>"))
}

type listResult struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listObject
	CommonPrefixes        []listPrefix
}

type listObject struct {
	Key          string
	LastModified string
}

type listPrefix struct{ Prefix string }

func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	most, err := strconv.Atoi(q.Get("max-keys"))
	if err != nil {
		fail(w, http.StatusBadRequest, "InvalidArgument")
		return
	}
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	var keys []string
	for key := range f.objects {
		rest, ok := strings.CutPrefix(key, q.Get("prefix"))
		if first, _, folder := strings.Cut(rest, "/"); folder && q.Get("delimiter") == "/" {
			key = q.Get("prefix") + first + "/"
		}
		if ok && key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	var result listResult
	if len(keys) > most {
		keys = keys[:most]
		result.IsTruncated, result.NextContinuationToken = true, keys[most-1]
	}
	for _, key := range keys {
		if strings.HasSuffix(key, "/") && q.Get("delimiter") == "/" {
			result.CommonPrefixes = append(result.CommonPrefixes, listPrefix{key})
			continue
		}
		result.Contents = append(result.Contents, listObject{key, f.objects[key].Format(time.RFC3339)})
	}
	_ = xml.NewEncoder(w).Encode(result)
}

// someKeys are credentials whose every part is a word to be looked for where it must not be.
func someKeys(t *testing.T) Credentials {
	t.Helper()
	c, err := CredentialsOf(map[string][]byte{
		secretAccessKeyID: []byte("HIDDENID"), secretSecretAccessKey: []byte("HIDDENKEY"), secretSessionToken: []byte("HIDDENTOKEN"),
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}
