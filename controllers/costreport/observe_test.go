package costreport

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// Whoever may create CostReports names a Secret of the operator's namespace: of all that are there, those alone are read that are
// for mail.
func TestOnlySecretsForMailAreRead(t *testing.T) {
	secret := func(namespace, name string, of corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: of, Data: map[string][]byte{"host": []byte("a")},
		}
	}
	r := &Reconciler{Dependencies: Dependencies{Namespace: "tideline-system"}, live: fake.NewClientBuilder().WithObjects(
		secret("tideline-system", "smtp", smtpType), secret("tideline-system", "tideline-webhook-certs", corev1.SecretTypeTLS),
		secret("tideline-system", "token", corev1.SecretTypeServiceAccountToken), secret("elsewhere", "other", smtpType),
	).Build()}
	for name, says := range map[string]string{
		"smtp": "", "tideline-webhook-certs": "which is required", "token": "which is required", "other": "There is no Secret other",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			data, problem, err := r.readSecret(t.Context(), name)
			g.Expect(err).NotTo(HaveOccurred())
			if says == "" {
				g.Expect(problem).To(BeEmpty())
				g.Expect(data).To(HaveKey("host"))
				return
			}
			g.Expect(problem).To(ContainSubstring(says))
			g.Expect(data).To(BeNil())
		})
	}
}

func TestAReportSaysThatNoPrometheusIsAsked(t *testing.T) {
	g := NewWithT(t)
	notes := func(url string, used ...cost.Used) []string {
		r := &Reconciler{config: &config.Configuration{Prometheus: config.Prometheus{URL: url}}}
		in := &cost.Input{Used: used}
		r.noteUse(in)
		return in.Notes
	}
	g.Expect(notes("")).To(ConsistOf("What was used and wasted is unknown, because the operator asks no Prometheus " +
		"(prometheus.url of its configuration)."))
	g.Expect(notes("http://prometheus:9090")).To(BeEmpty())
	g.Expect(notes("", cost.Used{})).To(BeEmpty(), "there was one that told")
}
