// Package modelstore reads what object storage says of a model: which increments trainings have written, and which full models
// merges have made of them. It lists and looks; it writes nothing and reads no object's content.
//
// Stores are a trust boundary. A location is what users wrote: Policy says which of them may be reached at all. Requests are
// signed with the credentials of the call and no others: neither the environment nor files nor the metadata service of a cloud is
// asked for any. Their rights need to be no more than to list the bucket, and to read the markers (s3:ListBucket, s3:GetObject).
package modelstore

import (
	"strings"
)

// The types that a Location may name.
const (
	// TypeS3 is a server that speaks S3.
	TypeS3 = "S3"
	// TypeFile is a directory of the machine that the operator runs on, for tests and demonstrations.
	TypeFile = "File"
	// TypeClaim is a volume that only pods mount: ObserveReport tells what is in it.
	TypeClaim = "Claim"
)

// Location is where the objects of a model are. All of it is what a user wrote: Policy.CheckLocation judges it.
type Location struct {
	// Type is TypeS3, TypeFile or TypeClaim.
	Type string
	// Endpoint is the URL of an S3 server, whose buckets are addressed by path. Empty: AWS's own in Region.
	Endpoint string
	// Region is part of the signature, and of the host name for AWS's own. Empty with an Endpoint: us-east-1.
	Region string
	// Bucket is a bucket's name, the absolute path of a directory for TypeFile, or the name of a claim for TypeClaim.
	Bucket string
	// Prefix is the folder of the model in the bucket, with or without a slash at its end. It may be empty.
	Prefix string
	// Increments and Full are folders under Prefix, with or without a slash at their ends. Neither lies in the other.
	Increments, Full string
	// Marker is the name of the object that a merge writes last into the directory of a full model.
	Marker string
}

// IncrementsPath returns what the keys of all increments begin with, with a slash at its end.
func (l Location) IncrementsPath() string { return folderPath(l.Prefix) + folderPath(l.Increments) }

// FullPath returns what the keys of all objects of a run's full model begin with, with a slash at its end.
func (l Location) FullPath(run string) string { return l.fullFolder() + run + "/" }

func (l Location) fullFolder() string { return folderPath(l.Prefix) + folderPath(l.Full) }

func (l Location) markerKey(full string) string { return l.FullPath(full) + l.Marker }

// describeBucket names the bucket for users.
func (l Location) describeBucket() string {
	switch {
	case l.Type == TypeFile:
		return "the directory " + quoteClipped(l.Bucket)
	case l.Endpoint == "":
		return "the bucket " + quoteClipped(l.Bucket) + " in " + l.Region
	}
	return "the bucket " + quoteClipped(l.Bucket) + " at " + l.Endpoint
}

func folderPath(name string) string {
	if name == "" || strings.HasSuffix(name, "/") {
		return name
	}
	return name + "/"
}
