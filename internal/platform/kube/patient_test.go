package kube

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// failing answers reads with these errors, and then with none.
type failing struct {
	client.Reader

	answers []error
}

func (f *failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	if len(f.answers) == 0 {
		return nil
	}
	next := f.answers[0]
	f.answers = f.answers[1:]
	return next
}

func TestPatientReaderReadsAgain(t *testing.T) {
	internal := apierrors.NewInternalError(errors.New("etcd is busy"))
	late := apierrors.NewTimeoutError("late", 0)
	missing := apierrors.NewNotFound(corev1.Resource("secrets"), "mail")
	for name, c := range map[string]struct {
		answers []error
		want    error
		left    int
	}{
		"two failures":   {[]error{internal, late}, nil, 0},
		"three failures": {[]error{internal, late, internal, late}, internal, 1},
		"no such object": {[]error{missing, internal}, missing, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reader := &failing{answers: c.answers}
			err := PatientReader{reader}.Get(t.Context(), client.ObjectKey{Name: "mail"}, &corev1.Secret{})
			if c.want == nil {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(c.want))
			}
			g.Expect(reader.answers).To(HaveLen(c.left))
		})
	}
}

func TestPatientReaderEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := PatientReader{&failing{}}.Get(ctx, client.ObjectKey{Name: "mail"}, &corev1.Secret{})
	g.Expect(err).To(HaveOccurred(), "what was not read is no object")
}
