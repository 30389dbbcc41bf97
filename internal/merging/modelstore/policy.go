package modelstore

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tideline-io/tideline/internal/platform/serverurl"
)

// EndpointAWS among Policy.Endpoints allows AWS's own servers, in every region.
const EndpointAWS = "aws"

// Policy is what the operator's configuration allows.
type Policy struct {
	// Endpoints are URLs of the S3 servers that locations may name, scheme://host[:port], and EndpointAWS. Empty: none.
	Endpoints []string
	// LocalDirectory is the absolute path of the folder in which the buckets of ProviderFile must lie. Empty: none may.
	LocalDirectory string
}

// Bounds of what S3 calls a bucket and a region.
var (
	bucketPattern  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	addressPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$`)
	regionPattern  = regexp.MustCompile(`^[a-z0-9-]{0,63}$`)
)

// Check says whether a location may be reached, and whether its words are what they must be. It sends nothing to anybody; for
// ProviderFile it follows symbolic links. What it returns is nil or an *Error with the Reason EndpointNotAllowed,
// ProviderNotAllowed, Invalid or, for a directory that is not there, BucketNotFound.
func (p Policy) Check(l Location) error {
	if err := checkKeys(l); err != nil {
		return err
	}
	switch l.Provider {
	case ProviderS3:
		return p.checkServer(l)
	case ProviderFile:
		_, err := p.directory(l)
		return err
	}
	return refuse(ProviderNotAllowed, "the provider is %s: it must be %s or %s", quoted(l.Provider), ProviderS3, ProviderFile)
}

func (p Policy) checkServer(l Location) error {
	switch {
	case !bucketPattern.MatchString(l.Bucket), strings.Contains(l.Bucket, ".."), addressPattern.MatchString(l.Bucket):
		return refuse(Invalid, "%s is no name of a bucket: it must have 3 to 63 lower case letters, digits, dots and hyphens",
			quoted(l.Bucket))
	case strings.HasSuffix(l.Bucket, "--x-s3"):
		return refuse(Invalid, "%s is a directory bucket, which lists in no order: use a general purpose bucket", quoted(l.Bucket))
	case !regionPattern.MatchString(l.Region), strings.HasPrefix(l.Region, "-"), strings.HasSuffix(l.Region, "-"):
		return refuse(Invalid, "%s is no region: it must have at most 63 lower case letters, digits and hyphens", quoted(l.Region))
	case l.Endpoint == "" && l.Region == "":
		return refuse(Invalid, "the store has neither a region nor an endpoint: give one")
	case l.Endpoint == "" && !slices.Contains(p.Endpoints, EndpointAWS):
		return refuse(EndpointNotAllowed, "AWS's own S3 is not allowed: name an endpoint that is, "+
			"or have %s added to the endpoints of the operator's configuration", quoted(EndpointAWS))
	case l.Endpoint == "":
		return nil
	}
	server, ok := serverurl.Parse(l.Endpoint)
	if !ok {
		return refuse(Invalid, "%s is no endpoint: it must be https:// or http://, a host and at most a port", quoted(l.Endpoint))
	}
	if !slices.ContainsFunc(p.Endpoints, func(allowed string) bool {
		allowed, ok := serverurl.Parse(allowed)
		return ok && allowed == server
	}) {
		return refuse(EndpointNotAllowed,
			"the endpoint %s is not allowed: name one that is, or have it added to the endpoints of the operator's configuration",
			quoted(server))
	}
	return nil
}

// directory returns the directory of a location, without symbolic links.
func (p Policy) directory(l Location) (string, error) {
	switch {
	case p.LocalDirectory == "":
		return "", refuse(ProviderNotAllowed, "the provider %s is not allowed: use %s, or start the operator with "+
			"--allow-local-stores", ProviderFile, ProviderS3)
	case !filepath.IsAbs(l.Bucket), filepath.Clean(l.Bucket) != strings.TrimSuffix(l.Bucket, "/"):
		return "", refuse(Invalid, "%s must be an absolute path without . and ..", quoted(l.Bucket))
	}
	allowed, err := filepath.EvalSymlinks(p.LocalDirectory)
	if err != nil {
		return "", refuse(ProviderNotAllowed, "the directory of local stores, %s, cannot be read: have it made",
			quoted(p.LocalDirectory))
	}
	outside := refuse(ProviderNotAllowed, "the directory %s is not allowed: it must lie in %s",
		quoted(l.Bucket), quoted(p.LocalDirectory))
	// Names first: what lies elsewhere is not asked whether it exists.
	if !within(p.LocalDirectory, l.Bucket) && !within(allowed, l.Bucket) {
		return "", outside
	}
	resolved, err := filepath.EvalSymlinks(l.Bucket)
	switch {
	case err != nil:
		return "", refuse(BucketNotFound, "there is no directory %s: make it, or correct the bucket", quoted(l.Bucket))
	case !within(allowed, resolved):
		return "", outside
	}
	if info, err := os.Stat(resolved); err != nil || !info.IsDir() {
		return "", refuse(BucketNotFound, "%s is no directory: make one, or correct the bucket", quoted(l.Bucket))
	}
	return resolved, nil
}

func within(directory, path string) bool {
	relative, err := filepath.Rel(directory, path)
	return err == nil && filepath.IsLocal(relative)
}

// checkKeys judges what becomes keys of objects.
func checkKeys(l Location) error {
	for _, f := range []struct {
		field, path string
		empty       bool
	}{{"prefix", l.Prefix, true}, {"increments", l.Increments, false}, {"full", l.Full, false}} {
		if f.path == "" && f.empty {
			continue
		}
		for segment := range strings.SplitSeq(strings.TrimSuffix(f.path, "/"), "/") {
			if !plainName(segment) {
				return refuse(Invalid, "%s is %s: it must be names of at most 512 bytes, joined by single slashes, "+
					"without . and .., __0x and what cannot be printed", f.field, quoted(f.path))
			}
		}
	}
	if !plainName(l.Marker) {
		return refuse(Invalid, "the completion marker is %s: it must be a name without a slash", quoted(l.Marker))
	}
	increments, full := l.IncrementsPath(), l.fullFolder()
	if strings.HasPrefix(increments, full) || strings.HasPrefix(full, increments) {
		return refuse(Invalid, "increments is %s and full is %s: neither may lie in the other", quoted(l.Increments), quoted(l.Full))
	}
	return nil
}

// plainName says whether a text is one name in a path, and the same in a key and on a disk.
func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 512 && utf8.ValidString(s) &&
		!strings.Contains(s, "/") && !strings.Contains(s, "__0x") && !strings.ContainsFunc(s, unicode.IsControl)
}
