// Package modelstore reads what object storage says of a model: which increments trainings have written, and which full models
// merges have made of them. It lists and looks; it writes nothing and reads no object's content.
//
// Stores are a trust boundary. A location is what users wrote: Policy says which of them may be reached at all. Requests are
// signed with the credentials of the call and no others: neither the environment nor files nor the metadata service of a cloud is
// asked for any. Their rights need to be no more than to list the bucket, and to read the markers (s3:ListBucket, s3:GetObject).
package modelstore

import (
	"regexp"
	"strings"
	"time"
)

// The providers that a Location may name.
const (
	// ProviderS3 is a server that speaks S3.
	ProviderS3 = "s3"
	// ProviderFile is a directory of the machine that the operator runs on, for tests and demonstrations.
	ProviderFile = "file"
)

// Location is where the objects of a model are. All of it is what a user wrote: Policy.Check judges it.
type Location struct {
	// Provider is ProviderS3 or ProviderFile.
	Provider string
	// Endpoint is the URL of an S3 server, whose buckets are addressed by path. Empty: AWS's own in Region.
	Endpoint string
	// Region is part of the signature, and of the host name for AWS's own. Empty with an Endpoint: us-east-1.
	Region string
	// Bucket is a bucket's name, or the absolute path of a directory for ProviderFile.
	Bucket string
	// Prefix is the folder of the model in the bucket, with or without a slash at its end. It may be empty.
	Prefix string
	// Increments and Full are folders under Prefix, with or without a slash at their ends. Neither lies in the other.
	Increments, Full string
	// Marker is the name of the object that a merge writes last into the directory of a full model.
	Marker string
}

// IncrementsPath returns what the keys of all increments begin with, with a slash at its end.
func (l Location) IncrementsPath() string { return folder(l.Prefix) + folder(l.Increments) }

// FullPath returns what the keys of all objects of a run's full model begin with, with a slash at its end.
func (l Location) FullPath(run string) string { return l.fullFolder() + run + "/" }

func (l Location) fullFolder() string { return folder(l.Prefix) + folder(l.Full) }

func (l Location) markerKey(full string) string { return l.FullPath(full) + l.Marker }

// where names the bucket for users.
func (l Location) where() string {
	switch {
	case l.Provider == ProviderFile:
		return "the directory " + quoted(l.Bucket)
	case l.Endpoint == "":
		return "the bucket " + quoted(l.Bucket) + " in " + l.Region
	}
	return "the bucket " + quoted(l.Bucket) + " at " + l.Endpoint
}

func folder(name string) string {
	if name == "" || strings.HasSuffix(name, "/") {
		return name
	}
	return name + "/"
}

const (
	runTimeLayout = "20060102t150405z"
	runIDLength   = 63 // of a DNS label
)

var runIDPattern = regexp.MustCompile(`^([0-9]{8}t[0-9]{6}z)-[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// RunID returns the id of a run that starts at a time, for example 20261122t004013z-7b3f9c. Ids sort by their time, in seconds, and
// are DNS labels. Unique tells runs of the same second apart: of it remain the first 46 letters, digits and hyphens, in lower case.
func RunID(start time.Time, unique string) string {
	unique = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, strings.ToLower(unique))
	id := start.UTC().Format(runTimeLayout) + "-" + strings.Trim(unique, "-")
	return strings.TrimRight(id[:min(len(id), runIDLength)], "-")
}

// RunTime returns when the run of an id started, in whole seconds, and whether it is an id that RunID makes.
func RunTime(id string) (time.Time, bool) {
	parts := runIDPattern.FindStringSubmatch(id)
	if parts == nil || len(id) > runIDLength {
		return time.Time{}, false
	}
	start, err := time.Parse(runTimeLayout, parts[1])
	return start, err == nil
}
