package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

func TestObjectStore(t *testing.T) {
	t.Parallel()
	c := startNothing(t)
	store, err := c.StartObjectStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const bucket = "models"
	if err := store.CreateBucket(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	if err := store.CreateBucket(t.Context(), bucket); err == nil {
		t.Error("a bucket was made twice")
	}
	put := &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String("ctr/inc/000001"), Body: strings.NewReader("one")}
	if _, err := store.Client().PutObject(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(store.Directory, bucket, "ctr", "inc", "000002")
	if err := os.WriteFile(written, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	checkKeys(t, store, "", "ctr/inc/000001", "ctr/inc/000002")
	checkKeys(t, store, "ctr/inc/000001", "ctr/inc/000002")
	checkRefused(t, store)

	store.Stop()
	if err := store.answers(t.Context()); err == nil {
		t.Error("the object store answers after it was stopped")
	}
	if err := store.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkKeys(t, store, "", "ctr/inc/000001", "ctr/inc/000002")
	stop(t, c)
}

// startNothing returns a cluster of which nothing runs yet: the object store needs nothing of it.
func startNothing(t *testing.T) *Cluster {
	t.Helper()
	repo, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{repo: repo, parts: map[string]Built{}}
	if c.options, err = (Options{}).complete(repo); err != nil {
		t.Fatal(err)
	}
	if c.state, err = openStateDir(t.Context(), c.options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

// checkKeys lists the objects after one, by pages of one.
func checkKeys(t *testing.T, store *ObjectStore, after string, want ...string) {
	t.Helper()
	pages := s3.NewListObjectsV2Paginator(store.Client(), &s3.ListObjectsV2Input{
		Bucket: aws.String("models"), Prefix: aws.String("ctr/inc/"), StartAfter: aws.String(after), MaxKeys: aws.Int32(1),
	})
	var got []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range page.Contents {
			got = append(got, aws.ToString(object.Key))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the objects after %q are %v, want %v", after, got, want)
	}
}

// checkRefused asks with a wrong secret.
func checkRefused(t *testing.T, store *ObjectStore) {
	t.Helper()
	client := s3.New(store.Client().Options(), func(o *s3.Options) {
		o.Credentials = credentials.NewStaticCredentialsProvider(store.AccessKey, "wrong", "")
	})
	_, err := client.ListBuckets(t.Context(), &s3.ListBucketsInput{})
	var answer smithy.APIError
	if !errors.As(err, &answer) || answer.ErrorCode() != "SignatureDoesNotMatch" {
		t.Errorf("listing with a wrong secret: %v, want SignatureDoesNotMatch", err)
	}
}
