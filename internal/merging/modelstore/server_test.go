package modelstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"gocloud.dev/blob/s3blob"

	"github.com/tideline-io/tideline/internal/merging"
)

func TestObserveServer(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t, "ctr/inc/", "ctr/inc/a", "ctr/inc/b", "ctr/inc/c/d", "ctr/inc/e/", "ctr/inc/__0x61__", "ctr/full/m1/_SUCCESS",
		"ctr/full/m1/shard", "ctr/full/m2/shard", "ctr/full/m3/shard/0/1", "ctr/other", "others")
	f.objects["ctr/inc/c/d"] = noon.Add(time.Hour)
	q := Query{Known: "m1", Run: "m2", After: "a", Most: 10}
	o, err := ObserveStore(t.Context(), f.policy(), f.location(), someKeys(t), q)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.RunComplete).To(BeFalse())
	g.Expect(o.LastFull).To(HaveValue(Equal(merging.Full{Name: "m1", Time: noon})))
	g.Expect(listed(t, o.Increments.List)).To(Equal([]string{"b", "c/d"}))
	g.Expect(o.Increments.NewestTime).To(BeTemporally("==", noon.Add(time.Hour)))
	g.Expect(f.asked("start-after", "ctr/inc/")).To(Equal([]string{"ctr/inc/a"}), "what is merged is not even listed")
	g.Expect(f.asked("delimiter", "ctr/full/")).To(Equal([]string{"/"}), "shards are not listed")
	g.Expect(f.asked("max-keys", "ctr/full/m1/")).To(Equal([]string{"10"}), "but for a glance at one model")

	q.Known = "" // Since the marker: all were written in its second.
	o, err = ObserveStore(t.Context(), f.policy(), f.location(), someKeys(t), q)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listed(t, o.Increments.List)).To(Equal([]string{"__0x61__", "a", "b", "c/d"}), "keys as the store has them")
	g.Expect(f.asked("start-after", "ctr/inc/")).To(Equal([]string{"ctr/inc/a", ""}))
}

func TestServerThatIgnoresStartAfter(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t, "ctr/inc/a", "ctr/inc/b", "ctr/full/m1/_SUCCESS", "ctr/full/m1/shard")
	f.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		q := r.URL.Query()
		q.Del("start-after")
		r.URL.RawQuery = q.Encode()
		return false
	}
	o, err := ObserveStore(t.Context(), f.policy(), f.location(), someKeys(t), Query{Known: "m1", After: "a", Most: 10})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listed(t, o.Increments.List)).To(Equal([]string{"b"}))
}

func TestPages(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t, "ctr/full/m1/_SUCCESS", "ctr/full/m1/shard")
	for i := range 2500 {
		f.objects[fmt.Sprintf("ctr/inc/%05d", i)] = noon
		f.objects[fmt.Sprintf("ctr/full/m0%04d/shard", i)] = noon
	}
	o, err := ObserveStore(t.Context(), f.policy(), f.location(), someKeys(t), Query{Known: "m1", After: "00099", Most: 1500})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.Increments.Count).To(Equal(2400))
	g.Expect(o.Increments.Listed).To(Equal(1500))
	g.Expect(o.Increments.First).To(Equal("00100"))
	g.Expect(o.Increments.Last).To(Equal("01599"))
	g.Expect(f.asked("max-keys", "ctr/inc/")).To(Equal([]string{"1000", "1000", "1000"}))
	g.Expect(f.asked("max-keys", "ctr/full/")).To(Equal([]string{"1000", "1000", "1000"}))
	g.Expect(o.LastFull).To(HaveValue(HaveField("Name", "m1")))
}

// What the SDK would take from its surroundings is not taken.
func TestCredentialsOfTheCallOnly(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	trap := newFake(t)
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "OPERATORS", "AWS_SECRET_ACCESS_KEY": "OPERATORS", "AWS_SESSION_TOKEN": "OPERATORS",
		"AWS_ENDPOINT_URL": trap.URL, "AWS_ENDPOINT_URL_S3": trap.URL, "AWS_REGION": "mars-1", "AWS_PROFILE": "operators",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": trap.URL, "AWS_EC2_METADATA_SERVICE_ENDPOINT": trap.URL,
	} {
		t.Setenv(name, value)
	}
	_, err := ObserveStore(t.Context(), f.policy(), f.location(), Credentials{}, Query{})
	g.Expect(reasonOf(err)).To(Equal(Forbidden))
	g.Expect(err).To(MatchError(ContainSubstring("needs credentials: name their Secret")))
	g.Expect(f.seen()).To(BeEmpty(), "no request without credentials")

	_, err = ObserveStore(t.Context(), f.policy(), f.location(), someKeys(t), Query{Run: "r"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.seen()).To(HaveLen(3), "full models, the run's marker, increments")
	for _, r := range f.seen() {
		g.Expect(r.Header.Get("Authorization")).To(ContainSubstring("Credential=HIDDENID/"))
		g.Expect(r.Header.Get("Authorization")).To(ContainSubstring("/us-east-1/s3/aws4_request"))
		g.Expect(r.Header.Get("X-Amz-Security-Token")).To(Equal("HIDDENTOKEN"))
	}
	g.Expect(trap.seen()).To(BeEmpty(), "no other server was asked")
}

func TestAnswers(t *testing.T) {
	answer := func(status int, code string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { fail(w, status, code) }
	}
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		want   Reason
		tries  int
		says   string
	}{
		{"access denied", answer(403, "AccessDenied"), Forbidden, 1, "(HTTP 403 AccessDenied): correct the keys in the Secret"},
		{"wrong key", answer(403, "SignatureDoesNotMatch"), Forbidden, 1, "(HTTP 403 SignatureDoesNotMatch)"},
		{"wrong id", answer(403, "InvalidAccessKeyId"), Forbidden, 1, "(HTTP 403 InvalidAccessKeyId)"},
		{"unauthorized", answer(401, ""), Forbidden, 1, "(HTTP 401"},
		{"old token", answer(400, "ExpiredToken"), Forbidden, 1, "(HTTP 400 ExpiredToken)"},
		{"clocks", answer(403, "RequestTimeTooSkewed"), Forbidden, 0, "its clock and the operator's differ too much"},
		{"no bucket", answer(404, "NoSuchBucket"), BucketNotFound, 1, `the store has no bucket "models" at http://127.0.0.1`},
		{"wrong id for versitygw", answer(404, "XAdminUserNotFound"), Forbidden, 1, "(HTTP 404 XAdminUserNotFound)"},
		{"not a page of S3", answer(404, "NoSuchPage"), Refused, 1, "refused the request (HTTP 404 NoSuchPage)"},
		{"broken", answer(500, "InternalError"), Unreachable, 2, "answers with a server error (HTTP 500 InternalError)"},
		{"slow down", answer(503, "SlowDown"), Unreachable, 2, "(HTTP 503 SlowDown)"},
		{"too many", answer(429, ""), Unreachable, 0, "(HTTP 429"},
		{"other region", answer(400, "AuthorizationHeaderMalformed"), Refused, 1, "is at another address (HTTP 400"},
		{"other error", answer(400, "InvalidArgument"), Refused, 1, "refused the request (HTTP 400 InvalidArgument)"},
		{"code that is none", answer(403, "HIDDEN KEY"), Forbidden, 1, "(HTTP 403)"},
		{"another protocol", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html><body><p>Welcome</body></html>"))
		}, Refused, 1, "did not answer as S3 does (HTTP 200): correct the endpoint"},
		{"objects without time", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<ListBucketResult><Contents><Key>ctr/full/a</Key></Contents></ListBucketResult>"))
		}, Refused, 1, "lacks fields that S3 requires"},
		{"half an answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("<ListBucketResult><Contents>"))
		}, Unreachable, 0, "Tideline cannot reach"},
		{"hangs up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			Unreachable, 2, "(EOF)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			f := newFake(t)
			f.answer = func(w http.ResponseWriter, r *http.Request) bool { c.answer(w, r); return true }
			_, err := ObserveStore(t.Context(), f.policy(), f.location(), someKeys(t), Query{})
			g.Expect(reasonOf(err)).To(Equal(c.want))
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			if c.tries > 0 {
				g.Expect(f.seen()).To(HaveLen(c.tries))
			}
			for ; err != nil; err = errors.Unwrap(err) {
				g.Expect(err.Error()).NotTo(Or(ContainSubstring("HIDDEN"), ContainSubstring("Signature="), ContainSubstring("list-type")))
			}
		})
	}
}

func TestMarkerThatMayNotBeRead(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t, "ctr/full/m1/_SUCCESS", "ctr/full/m1/shard")
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusForbidden)
		}
		return r.Method == http.MethodHead
	}
	_, err := ObserveStore(t.Context(), f.policy(), f.location(), someKeys(t), Query{})
	g.Expect(reasonOf(err)).To(Equal(Forbidden), "a model whose marker cannot be seen is not an incomplete one")
	g.Expect(err).To(MatchError(ContainSubstring("allow them to list the bucket and read its markers")))
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	trap := newFake(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			g := NewWithT(t)
			f := newFake(t)
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, trap.URL+r.URL.Path, status)
				return true
			}
			_, err := ObserveStore(t.Context(), f.policy(), f.location(), someKeys(t), Query{})
			g.Expect(reasonOf(err)).To(Equal(Refused))
			g.Expect(err).To(MatchError(ContainSubstring("does not follow redirects")))
			g.Expect(trap.seen()).To(BeEmpty(), "what is not allowed is not asked")

			f = newFake(t)
			f.answer = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodHead {
					http.Redirect(w, r, trap.URL+r.URL.Path, status)
				}
				return r.Method == http.MethodHead
			}
			_, err = ObserveStore(t.Context(), f.policy(), f.location(), someKeys(t), Query{Run: "r"})
			g.Expect(reasonOf(err)).To(Equal(Refused), "nor is a marker elsewhere taken for a missing one")
		})
	}
}

func TestServerIsTriedTwice(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t, "ctr/inc/a")
	var failed atomic.Bool
	f.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		if failed.Swap(true) {
			return false
		}
		fail(w, 500, "InternalError")
		return true
	}
	o, err := ObserveStore(t.Context(), f.policy(), f.location(), someKeys(t), Query{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.Increments.Count).To(Equal(1))
}

// A server refuses what is signed by a clock that is far from its own. The second try is signed by the server's.
func TestClocksThatDiffer(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t, "ctr/inc/a")
	ahead := time.Now().UTC().Add(3 * time.Hour)
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Date", ahead.Format(http.TimeFormat))
		signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err == nil && ahead.Sub(signed) < 15*time.Minute {
			return false
		}
		fail(w, 403, "RequestTimeTooSkewed")
		return true
	}
	o, err := ObserveStore(t.Context(), f.policy(), f.location(), someKeys(t), Query{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.Increments.Count).To(Equal(1))
	g.Expect(o.Increments.NewestTime).To(BeTemporally("==", noon))
}

func TestServerThatHangs(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := ObserveStore(ctx, f.policy(), f.location(), someKeys(t), Query{})
	g.Expect(reasonOf(err)).To(Equal(Unreachable))
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(err).To(MatchError(ContainSubstring("did not answer in time")))

	ctx, cancel = context.WithCancel(t.Context())
	f = newFake(t)
	f.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	_, err = ObserveStore(ctx, f.policy(), f.location(), someKeys(t), Query{})
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(reasonOf(err)).NotTo(Equal(Unreachable))
}

func TestNoServerListens(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	l := atAWS(func(l *Location) { l.Endpoint = server.URL })
	_, err := ObserveStore(t.Context(), Policy{Endpoints: []string{server.URL}}, l, someKeys(t), Query{})
	g.Expect(reasonOf(err)).To(Equal(Unreachable))
	g.Expect(err).To(MatchError(And(ContainSubstring("Tideline cannot reach"), ContainSubstring("connection refused"))))
	g.Expect(err).NotTo(MatchError(ContainSubstring("list-type")))
}

// AWS's own host is made of the region and the bucket, and nothing else.
func TestAWSHost(t *testing.T) {
	g := NewWithT(t)
	var hosts []string
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		hosts = append(hosts, r.URL.Scheme+"://"+r.URL.Host)
		return nil, errors.New("not sent")
	})
	l := atAWS(func(*Location) {})
	client := newClient(l, someKeys(t), transport)
	g.Expect(client.Options().Region).To(Equal("cn-north-1"))
	bucket, err := s3blob.OpenBucket(t.Context(), client, l.Bucket, nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, _, err = (&store{bucket: bucket}).modifiedTime(t.Context(), "a")
	g.Expect(err).To(HaveOccurred())
	g.Expect(hosts).To(And(HaveLen(tries), HaveEach("https://models.s3.cn-north-1.amazonaws.com.cn")))
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
