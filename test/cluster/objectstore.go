package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// versitygw is the program that serves S3, and its part.
const versitygw = "versitygw"

// An ObjectStore is a server that speaks S3, for models and their increments. It
// keeps a bucket as a folder and an object as a file, so a test that wants very
// many objects writes files.
type ObjectStore struct {
	// Endpoint is its URL. Buckets are named in the path: Endpoint/bucket/key.
	Endpoint string
	// Region is the one it takes signatures for.
	Region string
	// AccessKey and SecretKey are the only user's, who may do everything. They are
	// drawn at each start of a cluster.
	AccessKey string
	SecretKey string
	// Directory has one folder for each bucket.
	Directory string

	cluster *Cluster
	port    int
	process *Process
}

// StartObjectStore starts versitygw over an empty folder, on the loopback
// interface and without TLS. It is built the first time. StartObjectStore returns
// when the server answers a signed request. A cluster has one.
func (c *Cluster) StartObjectStore(ctx context.Context) (_ *ObjectStore, err error) {
	part := objectStorePart
	if c.parts[part.name], err = part.build(ctx, c.repo, c.options.Log); err != nil {
		return nil, err
	}
	s := &ObjectStore{
		Region:    "us-east-1",
		AccessKey: rand.Text(),
		SecretKey: rand.Text(),
		Directory: filepath.Join(c.state.path, "buckets"),
		cluster:   c,
	}
	// Beside the buckets, because not every file system has extended attributes.
	metadata := filepath.Join(c.state.path, "bucket-metadata")
	if err := errors.Join(os.Mkdir(s.Directory, 0o700), os.Mkdir(metadata, 0o700)); err != nil {
		return nil, err
	}
	s.process, err = c.startServer(ctx, Server{
		Name:    versitygw,
		Program: c.parts[part.name].Program(versitygw),
		Ports:   1,
		Env:     []string{"ROOT_ACCESS_KEY_ID=" + s.AccessKey, "ROOT_SECRET_ACCESS_KEY=" + s.SecretKey},
		Prepare: func(_ context.Context, ports []int) ([]string, error) {
			s.port = ports[0]
			s.Endpoint = "http://" + Address(s.port)
			return []string{
				"--port=" + Address(s.port), "--region=" + s.Region, "--quiet",
				"posix", "--sidecar=" + metadata, s.Directory,
			}, nil
		},
		Ready: s.answers,
	})
	if err != nil {
		return nil, err
	}
	c.addClient(s.process)
	return s, nil
}

// Client returns a client of the store that does not repeat what fails.
func (s *ObjectStore) Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint:     aws.String(s.Endpoint),
		Region:           s.Region,
		Credentials:      credentials.NewStaticCredentialsProvider(s.AccessKey, s.SecretKey, ""),
		UsePathStyle:     true,
		RetryMaxAttempts: 1,
	})
}

func (s *ObjectStore) answers(ctx context.Context) error {
	_, err := s.Client().ListBuckets(ctx, &s3.ListBucketsInput{})
	return err
}

// CreateBucket makes an empty bucket.
func (s *ObjectStore) CreateBucket(ctx context.Context, name string) error {
	if _, err := s.Client().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(name)}); err != nil {
		return fmt.Errorf("creating bucket %s: %w", name, err)
	}
	return nil
}

// Stop ends the server: connections are refused until Start.
func (s *ObjectStore) Stop() { s.process.stop(stopGrace) }

// Start starts the server again after Stop, at the same Endpoint and with the same
// keys and objects, and waits until it answers.
func (s *ObjectStore) Start(ctx context.Context) (err error) {
	if s.process, err = s.cluster.startAgain(ctx, s.process, s.port); err != nil {
		return err
	}
	s.cluster.addClient(s.process)
	return s.cluster.WaitFor(ctx, "the object store to answer again", s.answers, s.process)
}

// WriteKeys writes what clients of S3 need to a file that only this user reads,
// one NAME=value a line, under the names that such clients look for.
func (s *ObjectStore) WriteKeys(path string) error {
	return writeFile(path, fmt.Appendf(nil, "AWS_ENDPOINT_URL=%s\nAWS_REGION=%s\nAWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\n",
		s.Endpoint, s.Region, s.AccessKey, s.SecretKey), 0o600)
}
