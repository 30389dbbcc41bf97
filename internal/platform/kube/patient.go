package kube

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatientReader reads an object up to three times, within a second, while the API server says that it could not answer. It is for
// a step that reads several objects: if a fifth of the answers fails, half of such steps fail without it, and each failure
// doubles the time to the next.
type PatientReader struct{ client.Reader }

// Get is [client.Reader]'s. It returns the last error.
func (r PatientReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	var last error
	patience := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 3}
	err := wait.ExponentialBackoffWithContext(ctx, patience, func(ctx context.Context) (bool, error) {
		last = r.Reader.Get(ctx, key, object, options...)
		return last == nil || !passes(last), nil
	})
	if last == nil {
		return err // of the context, if it ended before the first try
	}
	return last
}

// passes tells whether an answer of the API server says nothing of the object, and may be another one at once.
func passes(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err)
}
