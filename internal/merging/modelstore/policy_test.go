package modelstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// atAWS is a location that is right, at AWS's own, as tests vary it.
func atAWS(vary func(*Location)) Location {
	l := Location{
		Type: TypeS3, Region: "cn-north-1", Bucket: "models",
		Prefix: "ctr", Increments: "inc/", Full: "full/", Marker: "_SUCCESS",
	}
	vary(&l)
	return l
}

// reasonOf is the reason of an Error, "" for nil, and what the error says for any other.
func reasonOf(err error) Reason {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Reason
	}
	return Reason(err.Error())
}

func TestCheckServers(t *testing.T) {
	both := []string{"https://minio.example.com:9000", EndpointAWS}
	for _, c := range []struct {
		name    string
		allowed []string
		vary    func(*Location)
		want    Reason
	}{
		{"AWS", both, func(*Location) {}, ""},
		{"AWS not allowed", both[:1], func(*Location) {}, EndpointNotAllowed},
		{"nothing allowed", nil, func(l *Location) { l.Endpoint = both[0] }, EndpointNotAllowed},
		{"empty entry allows nothing", []string{""}, func(*Location) {}, EndpointNotAllowed},
		{"AWS without region", both, func(l *Location) { l.Region = "" }, Invalid},
		{"aws is not an endpoint", both, func(l *Location) { l.Endpoint = EndpointAWS }, Invalid},
		{"other provider", both, func(l *Location) { l.Type = "gs" }, StoreTypeNotAllowed},
		{"no provider", both, func(l *Location) { l.Type = "" }, StoreTypeNotAllowed},

		{"endpoint", both, func(l *Location) { l.Endpoint = both[0] }, ""},
		{"endpoint without region", both, func(l *Location) { l.Endpoint, l.Region = both[0], "" }, ""},
		{"endpoint in other letters", both, func(l *Location) { l.Endpoint = "HTTPS://MinIO.example.com:9000/" }, ""},
		{"own port of https", []string{"https://minio"}, func(l *Location) { l.Endpoint = "https://minio:443" }, ""},
		{"own port of http", []string{"http://minio:80/"}, func(l *Location) { l.Endpoint = "http://minio" }, ""},
		{"address", []string{"http://[FD00::1]:9000"}, func(l *Location) { l.Endpoint = "http://[fd00::1]:9000" }, ""},
		{"other scheme", both, func(l *Location) { l.Endpoint = "http://minio.example.com:9000" }, EndpointNotAllowed},
		{"other port", both, func(l *Location) { l.Endpoint = "https://minio.example.com" }, EndpointNotAllowed},
		{"other host", both, func(l *Location) { l.Endpoint = "https://169.254.169.254" }, EndpointNotAllowed},
		{"longer host", both, func(l *Location) { l.Endpoint = "https://minio.example.com.evil.com:9000" }, EndpointNotAllowed},
		{"other scheme's port", []string{"http://minio"}, func(l *Location) { l.Endpoint = "http://minio:443" }, EndpointNotAllowed},
		{"user", both, func(l *Location) { l.Endpoint = "https://minio.example.com:9000@evil.com" }, Invalid},
		{"query", both, func(l *Location) { l.Endpoint = both[0] + "?x" }, Invalid},
		{"empty query", both, func(l *Location) { l.Endpoint = both[0] + "?" }, Invalid},
		{"fragment", both, func(l *Location) { l.Endpoint = both[0] + "#" }, Invalid},
		{"path", both, func(l *Location) { l.Endpoint = both[0] + "/a" }, Invalid},
		{"two slashes", both, func(l *Location) { l.Endpoint = both[0] + "//" }, Invalid},
		{"backslash", both, func(l *Location) { l.Endpoint = both[0] + "\\@evil.com" }, Invalid},
		{"no host", both, func(l *Location) { l.Endpoint = "https://:9000" }, Invalid},
		{"no scheme", both, func(l *Location) { l.Endpoint = "minio.example.com:9000" }, Invalid},
		{"file URL", both, func(l *Location) { l.Endpoint = "file:///etc" }, Invalid},
		{"entry with a path", []string{"https://minio/a"}, func(l *Location) { l.Endpoint = "https://minio" }, EndpointNotAllowed},

		{"region with a dot", both, func(l *Location) { l.Region = "evil.com" }, Invalid},
		{"region with a slash", both, func(l *Location) { l.Region = "evil/com" }, Invalid},
		{"region in capitals", both, func(l *Location) { l.Region = "CN" }, Invalid},
		{"region with a line break", both, func(l *Location) { l.Region = "cn\n" }, Invalid},
		{"region with a hyphen first", both, func(l *Location) { l.Region = "-cn" }, Invalid},
		{"region too long", both, func(l *Location) { l.Region = strings.Repeat("a", 64) }, Invalid},

		{"bucket with dots", both, func(l *Location) { l.Bucket = "models.example.com" }, ""},
		{"no bucket", both, func(l *Location) { l.Bucket = "" }, Invalid},
		{"bucket too short", both, func(l *Location) { l.Bucket = "ab" }, Invalid},
		{"bucket in capitals", both, func(l *Location) { l.Bucket = "Models" }, Invalid},
		{"bucket with a slash", both, func(l *Location) { l.Bucket = "models/../others" }, Invalid},
		{"bucket with two dots", both, func(l *Location) { l.Bucket = "a..b" }, Invalid},
		{"bucket is an address", both, func(l *Location) { l.Bucket = "10.0.0.1" }, Invalid},
		{"bucket is an ARN", both, func(l *Location) { l.Bucket = "arn:aws:s3:us-east-1:1:accesspoint/a" }, Invalid},
		{"directory bucket", both, func(l *Location) { l.Bucket = "models--usw2-az1--x-s3" }, Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			NewWithT(t).Expect(reasonOf(Policy{Endpoints: c.allowed}.CheckLocation(atAWS(c.vary)))).To(Equal(c.want))
		})
	}
}

func TestCheckKeys(t *testing.T) {
	for _, c := range []struct {
		name string
		vary func(*Location)
		want Reason
	}{
		{"no prefix", func(l *Location) { l.Prefix = "" }, ""},
		{"long prefix", func(l *Location) { l.Prefix = "a/b c/ü/" }, ""},
		{"similar folders", func(l *Location) { l.Increments, l.Full = "full-inc", "full" }, ""},
		{"prefix out", func(l *Location) { l.Prefix = "../others" }, Invalid},
		{"prefix in and out", func(l *Location) { l.Prefix = "a/../../others" }, Invalid},
		{"dot", func(l *Location) { l.Prefix = "./a" }, Invalid},
		{"slash first", func(l *Location) { l.Prefix = "/a" }, Invalid},
		{"only a slash", func(l *Location) { l.Prefix = "/" }, Invalid},
		{"two slashes", func(l *Location) { l.Prefix = "a//b" }, Invalid},
		{"two slashes at the end", func(l *Location) { l.Prefix = "a//" }, Invalid},
		{"control character", func(l *Location) { l.Prefix = "a\x00" }, Invalid},
		{"no text", func(l *Location) { l.Prefix = "a\xff" }, Invalid},
		{"too long", func(l *Location) { l.Prefix = strings.Repeat("a", 513) }, Invalid},
		{"what gocloud would undo", func(l *Location) { l.Prefix = "__0x2e__" }, Invalid},
		{"no increments", func(l *Location) { l.Increments = "" }, Invalid},
		{"increments out", func(l *Location) { l.Increments = "../inc" }, Invalid},
		{"no full", func(l *Location) { l.Full = "" }, Invalid},
		{"full out", func(l *Location) { l.Full = ".." }, Invalid},
		{"one folder for both", func(l *Location) { l.Full = "inc" }, Invalid},
		{"full in increments", func(l *Location) { l.Full = "inc/full" }, Invalid},
		{"increments in full", func(l *Location) { l.Increments = "full/inc" }, Invalid},
		{"no marker", func(l *Location) { l.Marker = "" }, Invalid},
		{"marker out", func(l *Location) { l.Marker = "../_SUCCESS" }, Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			NewWithT(t).Expect(reasonOf(Policy{Endpoints: []string{EndpointAWS}}.CheckLocation(atAWS(c.vary)))).To(Equal(c.want))
		})
	}
}

func TestCheckDirectories(t *testing.T) {
	root := t.TempDir()
	allowed, other := filepath.Join(root, "allowed"), filepath.Join(root, "allowed-not")
	for _, d := range []string{filepath.Join(allowed, "models"), other} {
		NewWithT(t).Expect(os.MkdirAll(d, 0o755)).To(Succeed())
	}
	for from, to := range map[string]string{
		filepath.Join(allowed, "out"):  other,
		filepath.Join(allowed, "in"):   filepath.Join(allowed, "models"),
		filepath.Join(root, "linked"):  allowed,
		filepath.Join(root, "pointer"): filepath.Join(allowed, "models"),
	} {
		NewWithT(t).Expect(os.Symlink(to, from)).To(Succeed())
	}
	NewWithT(t).Expect(os.WriteFile(filepath.Join(allowed, "file"), nil, 0o600)).To(Succeed())
	for _, c := range []struct {
		name, allowed, bucket string
		want                  Reason
	}{
		{"inside", allowed, allowed + "/models", ""},
		{"slash at the end", allowed + "/", allowed + "/models/", ""},
		{"the directory itself", allowed, allowed, ""},
		{"link that stays inside", allowed, allowed + "/in", ""},
		{"by a link to the directory", root + "/linked", root + "/linked/models", ""},
		{"by the directory's own name", root + "/linked", allowed + "/models", ""},
		{"none allowed", "", allowed + "/models", StoreTypeNotAllowed},
		{"allowed is not there", root + "/missing", root + "/missing/models", StoreTypeNotAllowed},
		{"outside", allowed, other, StoreTypeNotAllowed},
		{"outside and not there", allowed, root + "/missing", StoreTypeNotAllowed},
		{"the directory above", allowed, root, StoreTypeNotAllowed},
		{"the root", allowed, "/", Invalid},
		{"link that leads out", allowed, allowed + "/out", StoreTypeNotAllowed},
		{"link from outside", allowed, root + "/pointer", StoreTypeNotAllowed},
		{"dots", allowed, allowed + "/../allowed-not", Invalid},
		{"relative", allowed, "models", Invalid},
		{"empty", allowed, "", Invalid},
		{"missing", allowed, allowed + "/missing", BucketNotFound},
		{"a file", allowed, allowed + "/file", BucketNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := atAWS(func(l *Location) { l.Type, l.Bucket = TypeFile, c.bucket })
			NewWithT(t).Expect(reasonOf(Policy{LocalDirectory: c.allowed}.CheckLocation(l))).To(Equal(c.want))
		})
	}
}
