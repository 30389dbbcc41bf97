package integration

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/webhook"
	"github.com/tideline-io/tideline/test/testutil"
)

// canary begins what is secret of a user and must be seen nowhere else.
const canary = "canary-7f3a91"

// debugging is a configuration with which the operator logs all that it can.
const debugging = "apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\nlog: {level: debug}\n"

// secretive has a job and its workers hold secrets in every way that a template knows.
func secretive(t *corev1.PodTemplateSpec) {
	trainer := &t.Spec.Containers[0]
	trainer.Env = []corev1.EnvVar{
		{Name: "PASSWORD", Value: canary + "-variable"},
		{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "token"}, Key: "token",
		}}},
	}
	trainer.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "token"},
	}}}
	trainer.Args = []string{"--password=" + canary + "-argument"}
	t.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
}

// keepSecrets has jobs with secrets train, fail and be refused, and holds everything that the operator says to
// betraying none of these secrets, of its own keys and of its token.
func keepSecrets(in *testutil.Installation, s *testutil.Scenario, metrics string) {
	GinkgoHelper()
	s.Create(
		&corev1.Secret{ObjectMeta: object(s.Namespace, "token"), StringData: map[string]string{"token": canary + "-secret"}},
		&corev1.Secret{
			ObjectMeta: object(s.Namespace, "registry"), Type: corev1.SecretTypeDockerConfigJson,
			StringData: map[string]string{corev1.DockerConfigJsonKey: `{"auths":{"r":{"auth":"` + canary + `-registry"}}}`},
		},
	)
	grant(s, "ssh-keys")
	s.Submit(s.Job("trains").Range(1, 2).Template(secretive).With(func(job *v1beta1.ElasticTrainingJob) {
		job.Spec.Framework.Type, job.Spec.Framework.SSH = v1beta1.FrameworkCustom, v1beta1.SSHKeyPair
	}))
	// The variable that the API server does not take stands beside the one that is secret.
	s.Submit(s.Job("refused").Template(secretive).Template(func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Env = append(t.Spec.Containers[0].Env, corev1.EnvVar{Name: "=", Value: canary + "-beside"})
	}))
	Expect(s.Client.Create(s.Context(), s.Job("unknown").Tier("platinum").Template(secretive).Obj())).NotTo(Succeed(),
		"a webhook refuses it")
	Eventually(s.Fetch("trains")).Should(testutil.Train(2), "one trains")
	Eventually(s.Fetch("refused")).Should(testutil.BeStalled(v1beta1.ReasonRejected), "one is refused")
	s.Fail("trains", 1, 3, "out of luck")
	Eventually(s.Fetch("trains")).Should(testutil.HaveRestarts(1), "a worker is lost")
	Eventually(s.Fetch("trains")).Should(testutil.Train(2), "and all have begun anew")

	said := whatIsSaid(in, s, metrics)
	Expect(said["the log"]).To(And(ContainSubstring(s.Namespace+"/trains"), ContainSubstring(`"level":"debug"`)), "it says all")
	for where, text := range said {
		for what, secret := range secrets(in, s) {
			// Not by a matcher, which would print it.
			Expect(betrays(text, secret)).To(BeFalse(), "%s stands in %s", what, where)
		}
	}
}

// betrays tells whether a secret stands in a text, as it is or in the base64 in which the data of a Secret is written. There it
// may begin at any byte of the data, and so with any of the three bytes that four characters stand for.
func betrays(text, secret string) bool {
	if strings.Contains(text, secret) {
		return true
	}
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString(append(make([]byte, before), secret...))
		// Of the characters, those that no neighbour of the secret has a part in: each stands for 6 bits.
		first, end := (before*8+5)/6, (before+len(secret))*8/6
		if strings.Contains(text, encoded[first:end]) {
			return true
		}
	}
	return false
}

// secrets are what must stand nowhere, each by its name.
func secrets(in *testutil.Installation, s *testutil.Scenario) map[string]string {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(in.Logs(), "operator.kubeconfig"))
	Expect(err).NotTo(HaveOccurred(), "the operator's kubeconfig is read")
	Expect(config.BearerToken).NotTo(BeEmpty(), "the operator has a token")
	all := map[string]string{"a user's secret": canary, "the operator's token": config.BearerToken}
	certificates := &corev1.Secret{}
	key := client.ObjectKey{Namespace: testutil.OperatorNamespace, Name: webhook.CertificatesName}
	Expect(in.Client.Get(s.Context(), key, certificates)).To(Succeed(), "the webhooks have keys")
	ssh := sshSecret(s, "trains")
	users := &corev1.SecretList{}
	Expect(s.Client.List(s.Context(), users, client.InNamespace(s.Namespace))).To(Succeed(), "Secrets are listed")
	users.Items = append(users.Items, *certificates)
	for what, pem := range map[string][]byte{
		"the key of the webhooks": certificates.Data[corev1.TLSPrivateKeyKey], "the key of their CA": certificates.Data["ca.key"],
		"the workers' key": ssh.Data[corev1.SSHAuthPrivateKey],
	} {
		lines := strings.Split(string(pem), "\n")
		Expect(len(lines)).To(BeNumerically(">", 3), "%s is one", what)
		all[what] = lines[2] // The second line differs from key to key.
	}
	// All but the token are the data of Secrets.
	logged, err := json.Marshal(users)
	Expect(err).NotTo(HaveOccurred(), "Secrets are written")
	for what, secret := range all {
		Expect(betrays(string(logged), secret)).To(Equal(secret != config.BearerToken), "%s would be found in a logged Secret", what)
	}
	return all
}

// whatIsSaid is everything that the operator says of a scenario, by where it says so.
func whatIsSaid(in *testutil.Installation, s *testutil.Scenario, metrics string) map[string]string {
	GinkgoHelper()
	log, err := os.ReadFile(filepath.Join(in.Logs(), "operator.log"))
	Expect(err).NotTo(HaveOccurred(), "the log is read")
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "http://"+metrics+"/metrics", http.NoBody)
	Expect(err).NotTo(HaveOccurred(), "there is an address")
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred(), "metrics are served")
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred(), "metrics are read")
	said := map[string]string{"the log": string(log), "the metrics": string(page)}

	add := func(what string, value any) {
		written, err := json.Marshal(value)
		Expect(err).NotTo(HaveOccurred(), "%s is written", what)
		said[what] += string(written)
	}
	events, plain, maps := &eventsv1.EventList{}, &corev1.EventList{}, &corev1.ConfigMapList{}
	jobs := &v1beta1.ElasticTrainingJobList{}
	for what, list := range map[string]client.ObjectList{
		"events": events, "events of the core group": plain, "ConfigMaps": maps, "jobs": jobs,
	} {
		Expect(s.Client.List(s.Context(), list, client.InNamespace(s.Namespace))).To(Succeed(), "%s are listed", what)
		if what != "jobs" {
			add(what, list)
		}
	}
	Expect(events.Items).NotTo(BeEmpty(), "there are events")
	for i := range jobs.Items {
		add("statuses", jobs.Items[i].Status)
		spec, err := json.Marshal(jobs.Items[i].Spec)
		Expect(err).NotTo(HaveOccurred(), "a spec is written")
		Expect(string(spec)).To(ContainSubstring(canary), "what is looked for would be found")
	}
	return said
}
