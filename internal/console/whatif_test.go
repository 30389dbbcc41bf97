package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
)

// fitting foretells that everything fits, and notes the queues that it is asked about.
type fitting struct{ queues []string }

func (f *fitting) ForetellStart(_ context.Context, job *v1beta1.ElasticTrainingJob, queue string) (*arbiter.Outlook, error) {
	f.queues = append(f.queues, queue)
	return &arbiter.Outlook{Gang: capacity.Gang{Workers: job.Spec.MinReplicas}, Answer: capacity.Answer{Fits: true}}, nil
}

const asked = "/console/what-if?namespace=%s&workers=4&accelerators=8&resource=nvidia.com/gpu&cpu=8&memory=64Gi&tier=exploratory"

func TestWhatIfIsForThoseWhoMayCreateTrainings(t *testing.T) {
	g := NewWithT(t)
	s := serve(world(), func(ask authorizationv1.SubjectAccessReviewSpec) bool {
		of := ask.ResourceAttributes
		return of == nil || (of.Verb == "create" && of.Resource == "elastictrainingjobs" && of.Namespace == "mine")
	})
	w := get(s, "/console/what-if", "good")
	g.Expect(w.Code).To(Equal(http.StatusOK))
	g.Expect(w.Body.String()).To(And(ContainSubstring("<form"), Not(ContainSubstring("alert")), Not(ContainSubstring("live.js"))))
	g.Expect(get(s, fmt.Sprintf(asked, "mine"), "good").Body.String()).To(ContainSubstring("4 in mine would start now."))
	g.Expect(get(s, fmt.Sprintf(asked, "theirs"), "good").Body.String()).To(And(
		ContainSubstring("You may not create trainings in namespace theirs"), Not(ContainSubstring("would start now"))))

	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/what-if", http.NoBody)
	req.Header.Set("Authorization", "Bearer good")
	req.Header.Set("Accept", "text/event-stream")
	followed := httptest.NewRecorder()
	s.ServeHTTP(followed, req)
	g.Expect(followed.Header().Get("Content-Type")).To(HavePrefix("text/html"), "an answer is not followed")
}

func TestWhatIfAsksAboutTheQueueOfTheNamespace(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(errors.Join(v1beta1.AddToScheme(scheme), corev1.AddToScheme(scheme))).To(Succeed())
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}).Build()
	f := &fitting{}
	said, err := foretellBy(reader, f)(t.Context(), job("mine", "what-if", ""))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said).To(ConsistOf(ContainSubstring("would start now")))
	g.Expect(f.queues).To(Equal([]string{"default"}))
	g.Expect(foretellBy(reader, f)(t.Context(), job("gone", "what-if", ""))).To(Equal([]string{"There is no namespace gone."}))
}

// The API server is asked about a bounded number of tokens that it does not know.
func TestStrangersAreBounded(t *testing.T) {
	g := NewWithT(t)
	s := serve(world(), everything)
	g.Expect(get(s, "/console/", "good").Code).To(Equal(http.StatusOK))
	codes := map[int]int{}
	for i := range 2 * strangersAtOnce {
		codes[get(s, "/console/", fmt.Sprint("bad-", i)).Code]++
	}
	g.Expect(codes).To(HaveLen(2))
	g.Expect(codes[http.StatusUnauthorized]).To(BeNumerically("~", strangersAtOnce, 4*strangersASecond))
	g.Expect(codes).To(HaveKey(http.StatusTooManyRequests))
	s.guard.answers = nil // As after half a minute.
	g.Expect(get(s, "/console/", "good").Code).To(Equal(http.StatusOK), "those who are signed in notice nothing")
}
