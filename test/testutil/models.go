package testutil

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// S3 is a server for objects, as its only user sees it, and the folder in which it keeps them.
type S3 struct{ Endpoint, AccessKey, SecretKey, Directory string }

// StoreSecret is the Secret that the MergeJobs of a scenario name.
const StoreSecret = "model-store"

// Models is a bucket of a scenario, one folder a model.
type Models struct {
	s *Scenario
	// directory has the bucket's objects as files.
	directory string
	store     v1beta1.ModelStore
	put       func(ctx context.Context, key string) error
}

// NewModels makes a bucket of the scenario's name, and the Secret for it.
func (s *Scenario) NewModels(server S3) *Models {
	s.t.Helper()
	bucket, c := aws.String(s.Namespace), s3.New(s3.Options{
		BaseEndpoint: aws.String(server.Endpoint), Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(server.AccessKey, server.SecretKey, ""),
	})
	_, err := c.CreateBucket(s.ctx, &s3.CreateBucketInput{Bucket: bucket})
	s.must(err, "create a bucket")
	s.Create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: StoreSecret},
		StringData: map[string]string{"AWS_ACCESS_KEY_ID": server.AccessKey, "AWS_SECRET_ACCESS_KEY": server.SecretKey},
	})
	return &Models{
		s: s, directory: filepath.Join(server.Directory, s.Namespace),
		store: v1beta1.ModelStore{
			Type: v1beta1.StoreS3, S3: &v1beta1.S3Store{
				Endpoint: server.Endpoint, Bucket: s.Namespace, CredentialsRef: v1beta1.ObjectRef{Name: StoreSecret},
			},
		},
		put: func(ctx context.Context, key string) error {
			_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: aws.String(key), Body: bytes.NewReader([]byte("x"))})
			return err
		},
	}
}

// LocalModels is a bucket of provider file, a folder of the scenario's name in a folder that the operator allows.
func (s *Scenario) LocalModels(stores string) *Models {
	s.t.Helper()
	directory := filepath.Join(stores, s.Namespace)
	s.must(os.MkdirAll(directory, 0o700), "make a bucket")
	return &Models{
		s: s, directory: directory, store: v1beta1.ModelStore{Type: v1beta1.StoreFile, File: &v1beta1.FileStore{Path: directory}},
		put: func(_ context.Context, key string) error {
			file := filepath.Join(directory, filepath.FromSlash(key))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return err
			}
			return os.WriteFile(file, nil, 0o600)
		},
	}
}

// Of is where a model is.
func (m *Models) Of(model string) v1beta1.ModelStore {
	store := m.store.DeepCopy()
	store.Prefix = model
	return *store
}

// Put writes an object of a model.
func (m *Models) Put(model, name string) error { return m.put(m.s.ctx, model+"/"+name) }

// Increments writes increments first to last of a model.
func (m *Models) Increments(model string, first, last int) {
	m.s.t.Helper()
	for i := first; i <= last; i++ {
		m.s.must(m.Put(model, fmt.Sprintf("inc/%06d", i)), "write an increment")
	}
}

// Full writes a full model of that age, older than all increments of the model that are written after it.
func (m *Models) Full(model, name string, age time.Duration) {
	m.s.t.Helper()
	m.s.must(m.complete(m.s.ctx, model, name), "write a full model")
	m.Date(model, "full/"+name+"/_SUCCESS", time.Now().Add(-age))
}

// Due has a model with a full model of that age, and three increments since.
func (m *Models) Due(model string, age time.Duration) {
	m.s.t.Helper()
	m.Full(model, "base", age)
	m.Increments(model, 1, 3)
}

// Date sets when an object was written, as the server tells it.
func (m *Models) Date(model, name string, at time.Time) {
	m.s.t.Helper()
	m.s.must(os.Chtimes(filepath.Join(m.directory, model, filepath.FromSlash(name)), at, at), "date an object")
}

// Complete writes the full model of the run of a merge whose pods run, as its program does.
func (m *Models) Complete(ctx context.Context, job *v1beta1.MergeJob) error {
	return m.complete(ctx, job.Spec.Store.Prefix, job.Status.Run.ID)
}

// complete writes a full model, its marker last.
func (m *Models) complete(ctx context.Context, model, name string) error {
	if err := m.put(ctx, model+"/full/"+name+"/model"); err != nil {
		return err
	}
	return m.put(ctx, model+"/full/"+name+"/_SUCCESS")
}
