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
	// LocalDirectory is the absolute path of the folder in which the buckets of TypeFile must lie. Empty: none may.
	LocalDirectory string
}

// Bounds of what S3 calls a bucket and a region.
var (
	bucketPattern  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	addressPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$`)
	regionPattern  = regexp.MustCompile(`^[a-z0-9-]{0,63}$`)
)

// CheckLocation returns an error if the operator must not reach a location, or if one of its fields is malformed. It sends no
// request; for TypeFile it follows symbolic links. The error is an *Error with the Reason EndpointNotAllowed,
// StoreTypeNotAllowed, Invalid or, for a directory that does not exist, BucketNotFound.
func (p Policy) CheckLocation(l Location) error {
	if err := checkKeys(l); err != nil {
		return err
	}
	switch l.Type {
	case TypeS3:
		return p.checkServer(l)
	case TypeFile:
		_, err := p.resolveDirectory(l)
		return err
	case TypeClaim:
		return nil // The operator reaches no volume.
	}
	return refuse(StoreTypeNotAllowed, "the type is %s, but must be %s, %s or %s", quoteClipped(l.Type), TypeS3, TypeClaim, TypeFile)
}

func (p Policy) checkServer(l Location) error {
	switch {
	case !bucketPattern.MatchString(l.Bucket), strings.Contains(l.Bucket, ".."), addressPattern.MatchString(l.Bucket):
		return refuse(Invalid, "%s is not a valid bucket name: use 3 to 63 lower case letters, digits, dots and hyphens",
			quoteClipped(l.Bucket))
	case strings.HasSuffix(l.Bucket, "--x-s3"):
		return refuse(Invalid, "%s is a directory bucket, which lists in no order: use a general purpose bucket",
			quoteClipped(l.Bucket))
	case !regionPattern.MatchString(l.Region), strings.HasPrefix(l.Region, "-"), strings.HasSuffix(l.Region, "-"):
		return refuse(Invalid, "%s is not a valid region: use at most 63 lower case letters, digits and hyphens",
			quoteClipped(l.Region))
	case l.Endpoint == "" && l.Region == "":
		return refuse(Invalid, "the store has neither a region nor an endpoint: give one")
	case l.Endpoint == "" && !slices.Contains(p.Endpoints, EndpointAWS):
		return refuse(EndpointNotAllowed, "the operator's configuration does not allow AWS S3: use an endpoint that it allows, "+
			"or ask an administrator to add %s to merges.endpoints", quoteClipped(EndpointAWS))
	case l.Endpoint == "":
		return nil
	}
	server, ok := serverurl.Parse(l.Endpoint)
	if !ok {
		return refuse(Invalid, "%s is not a valid endpoint: use https:// or http://, a host and optionally a port",
			quoteClipped(l.Endpoint))
	}
	if !slices.ContainsFunc(p.Endpoints, func(allowed string) bool {
		allowed, ok := serverurl.Parse(allowed)
		return ok && allowed == server
	}) {
		return refuse(EndpointNotAllowed,
			"the operator's configuration does not allow the endpoint %s: use one that it allows, or ask an administrator to add it to "+
				"merges.endpoints",
			quoteClipped(server))
	}
	return nil
}

// resolveDirectory returns the directory of a location, without symbolic links.
func (p Policy) resolveDirectory(l Location) (string, error) {
	switch {
	case p.LocalDirectory == "":
		return "", refuse(StoreTypeNotAllowed, "the operator does not allow the type %s: use %s, or start the operator with "+
			"--allow-local-stores", TypeFile, TypeS3)
	case !filepath.IsAbs(l.Bucket), filepath.Clean(l.Bucket) != strings.TrimSuffix(l.Bucket, "/"):
		return "", refuse(Invalid, "%s must be an absolute path without . and ..", quoteClipped(l.Bucket))
	}
	allowed, err := filepath.EvalSymlinks(p.LocalDirectory)
	if err != nil {
		return "", refuse(StoreTypeNotAllowed, "the operator cannot read the directory of local stores, %s: create it",
			quoteClipped(p.LocalDirectory))
	}
	outside := refuse(StoreTypeNotAllowed, "the directory %s is not allowed: it must lie in %s",
		quoteClipped(l.Bucket), quoteClipped(p.LocalDirectory))
	// The name is checked before the disk is: otherwise users could learn which directories exist on the operator's machine.
	if !isWithin(p.LocalDirectory, l.Bucket) && !isWithin(allowed, l.Bucket) {
		return "", outside
	}
	resolved, err := filepath.EvalSymlinks(l.Bucket)
	switch {
	case err != nil:
		return "", refuse(BucketNotFound, "the directory %s does not exist: create it, or correct the bucket", quoteClipped(l.Bucket))
	case !isWithin(allowed, resolved):
		return "", outside
	}
	if info, err := os.Stat(resolved); err != nil || !info.IsDir() {
		return "", refuse(BucketNotFound, "%s is not a directory: create one, or correct the bucket", quoteClipped(l.Bucket))
	}
	return resolved, nil
}

func isWithin(directory, path string) bool {
	relative, err := filepath.Rel(directory, path)
	return err == nil && filepath.IsLocal(relative)
}

// checkKeys checks the fields that become keys of objects.
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
				return refuse(Invalid, "%s is %s: use names of at most 512 bytes joined by single slashes, "+
					"without . and .., __0x and control characters", f.field, quoteClipped(f.path))
			}
		}
	}
	if !plainName(l.Marker) {
		return refuse(Invalid, "the completion marker is %s: use a name without a slash", quoteClipped(l.Marker))
	}
	increments, full := l.IncrementsPath(), l.fullFolder()
	if strings.HasPrefix(increments, full) || strings.HasPrefix(full, increments) {
		return refuse(Invalid, "increments is %s and full is %s: neither may be inside the other", quoteClipped(l.Increments),
			quoteClipped(l.Full))
	}
	return nil
}

// plainName tells whether a text is one segment of a path, and reads the same as a key and as a file name.
func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 512 && utf8.ValidString(s) &&
		!strings.Contains(s, "/") && !strings.Contains(s, "__0x") && !strings.ContainsFunc(s, unicode.IsControl)
}
