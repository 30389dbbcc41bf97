package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

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

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(errors.Join(v1beta1.AddToScheme(s), corev1.AddToScheme(s)))
	return s
}

const asked = "/console/what-if?namespace=%s&workers=4&accelerators=8&resource=nvidia.com/gpu&cpu=8&memory=64Gi&tier=exploratory"

func TestWhatIfIsForThoseWhoMayCreateTrainings(t *testing.T) {
	g := NewWithT(t)
	var about []string
	s := serve(world(), func(ask authorizationv1.SubjectAccessReviewSpec) bool {
		of := ask.ResourceAttributes
		if of != nil {
			about = append(about, of.Namespace)
		}
		return of == nil || (of.Verb == "create" && of.Resource == "elastictrainingjobs" && of.Namespace == "mine")
	})
	w := get(s, "/console/what-if", "good")
	g.Expect(w.Code).To(Equal(http.StatusOK))
	g.Expect(w.Body.String()).To(And(ContainSubstring("<form"), Not(ContainSubstring("alert")), Not(ContainSubstring("live.js"))))
	g.Expect(get(s, fmt.Sprintf(asked, "mine"), "good").Body.String()).To(
		ContainSubstring("This job would start now: its 4 core workers fit."))
	g.Expect(s.whatIfs.Start.(*fitting).queues).To(Equal([]string{"default"}))
	for _, namespace := range []string{"theirs", "gone"} {
		g.Expect(get(s, fmt.Sprintf(asked, namespace), "good").Body.String()).To(And(
			ContainSubstring("There is no namespace "+namespace+", or you may not create trainings there."),
			Not(ContainSubstring("would start now"))), "who may not create there learns nothing, not even whether there is one")
	}
	g.Expect(about).NotTo(ContainElement("gone"), "the API server is not asked about any name that somebody writes")

	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/what-if", http.NoBody)
	req.Header.Set("Authorization", "Bearer good")
	req.Header.Set("Accept", "text/event-stream")
	followed := httptest.NewRecorder()
	s.ServeHTTP(followed, req)
	g.Expect(followed.Header().Get("Content-Type")).To(HavePrefix("text/html"), "an answer is not followed")
}

// changing says the guarantee that it is asked about, for how long, and whether it may name others.
type changing struct{}

func (changing) TellChange(_ context.Context, p *v1beta1.ResourceQuotaProfile, window time.Duration, names bool) []string {
	guarantee := p.Spec.Queue.Guarantee["nvidia.com/gpu"]
	return []string{fmt.Sprintf("%s with %s, %s, %t", p.Name, &guarantee, window, names)}
}

const askedChange = "/console/what-if?team=%s&device=nvidia.com/gpu&guarantee=8&capability=&per-user=&days=2"

func TestWhatAnotherShareWouldHaveChangedIsForThoseWhoMaySetIt(t *testing.T) {
	g := NewWithT(t)
	lists := false
	s := serve(world(), func(ask authorizationv1.SubjectAccessReviewSpec) bool {
		of := ask.ResourceAttributes
		return of == nil || (of.Verb == v1beta1.VerbSetShare || of.Verb == "update" && of.Name == "ads") && of.Name != "gone" ||
			lists && of.Verb == "list"
	})
	g.Expect(get(s, fmt.Sprintf(askedChange, "ads"), "good").Body.String()).To(And(
		ContainSubstring("ads with 8, 48h0m0s, false"), Not(ContainSubstring("would start"))))
	for _, team := range []string{"rec", "gone"} {
		g.Expect(get(s, fmt.Sprintf(askedChange, team), "good").Body.String()).To(And(
			ContainSubstring("There is no profile "+team+", or you may not change it and set its share"),
			Not(ContainSubstring("48h0m0s"))))
	}
	s.guard.answers = nil // As after half a minute.
	lists = true
	g.Expect(get(s, fmt.Sprintf(askedChange, "ads"), "good").Body.String()).To(ContainSubstring("48h0m0s, true"))
}

// The API server is asked about a bounded number of tokens that it does not know.
func TestReviewsOfUnknownTokensAreBounded(t *testing.T) {
	g := NewWithT(t)
	s := serve(world(), everything)
	g.Expect(get(s, "/console/", "good").Code).To(Equal(http.StatusOK))
	codes := map[int]int{}
	for i := range 2 * reviewsAtOnce {
		codes[get(s, "/console/", fmt.Sprint("bad-", i)).Code]++
	}
	g.Expect(codes).To(HaveLen(2))
	g.Expect(codes[http.StatusUnauthorized]).To(BeNumerically(">=", reviewsAtOnce-1))
	g.Expect(codes).To(HaveKey(http.StatusTooManyRequests))
	s.guard.answers = nil // As after half a minute.
	g.Expect(get(s, "/console/", "good").Code).To(Equal(http.StatusOK), "those who are signed in notice nothing")
}
