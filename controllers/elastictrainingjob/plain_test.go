package elastictrainingjob

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// unread creates what the operator does not read for a job, with a client that answers creation so, and returns what came of it.
func unread(
	t *testing.T, answer error, create func(*Reconciler, context.Context, jobstate.Observed, training.Decision) *kube.Problem,
) (*kube.Problem, client.Client) {
	t.Helper()
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr", UID: "u-1"}}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if answer != nil {
				return answer
			}
			return c.Create(ctx, o, options...)
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("the operator does not read it")
		},
	}).Build()
	r := &Reconciler{client: c}
	d := training.Decision{
		CreateSSHKeys: true, CreateNetworkPolicy: true,
		Blueprint: trainingpod.Blueprint{Job: job, Attempt: &v1beta1.AttemptStatus{}},
	}
	return create(r, t.Context(), jobstate.Observed{Job: job}, d), c
}

func keysOf(t *testing.T, answer error) (*kube.Problem, []corev1.Secret) {
	t.Helper()
	p, c := unread(t, answer, (*Reconciler).createSSHKeys)
	secrets := &corev1.SecretList{}
	NewWithT(t).Expect(c.List(t.Context(), secrets)).To(Succeed())
	return p, secrets.Items
}

func TestSSHKeysAreCreated(t *testing.T) {
	g := NewWithT(t)
	p, secrets := keysOf(t, nil)
	g.Expect(p).To(BeNil())
	g.Expect(secrets).To(HaveLen(1))
	g.Expect(string(secrets[0].Data["ssh-privatekey"])).To(HavePrefix("-----BEGIN OPENSSH PRIVATE KEY-----\n"))
	g.Expect(string(secrets[0].Data["authorized_keys"])).To(And(HavePrefix("ssh-ed25519 "), HaveSuffix(" ads/ctr\n")))
}

func TestSSHKeysThatAreThereAreKept(t *testing.T) {
	p, _ := keysOf(t, apierrors.NewAlreadyExists(corev1.Resource("secrets"), "ctr-ssh"))
	NewWithT(t).Expect(p).To(BeNil())
}

func TestWithoutTheComponentTheJobWaitsAndSaysWhichToApply(t *testing.T) {
	g := NewWithT(t)
	p, _ := keysOf(t, apierrors.NewForbidden(corev1.Resource("secrets"), "ctr-ssh", errors.New(
		`User "system:serviceaccount:tideline-system:tideline-controller-manager" cannot create resource "secrets" in API group ""`)))
	g.Expect(p.Reason).To(Equal(v1beta1.ReasonSSHKeysForbidden))
	g.Expect(p.Class).To(Equal(kube.Wait))
	g.Expect(p.Message).To(ContainSubstring("config/components/ssh-keys"))
	g.Expect(p.Message).NotTo(ContainSubstring("PRIVATE KEY"))

	p, _ = keysOf(t, apierrors.NewForbidden(corev1.Resource("secrets"), "ctr-ssh", errors.New("exceeded quota: secrets")))
	g.Expect(p.Reason).To(Equal(v1beta1.ReasonQuotaExceeded), "a right that is there but used up is another matter")
}

func TestNetworkPolicyIsCreatedOnceOrTheJobSaysWhatToApply(t *testing.T) {
	g := NewWithT(t)
	create := (*Reconciler).createNetworkPolicy
	p, c := unread(t, nil, create)
	g.Expect(p).To(BeNil())
	policies := &networkingv1.NetworkPolicyList{}
	g.Expect(c.List(t.Context(), policies)).To(Succeed())
	g.Expect(policies.Items).To(HaveLen(1))

	resource := networkingv1.Resource("networkpolicies")
	p, _ = unread(t, apierrors.NewAlreadyExists(resource, "ctr"), create)
	g.Expect(p).To(BeNil(), "one that is there is the job's own")
	forbidden := errors.New(`User "x" cannot create resource "networkpolicies"`)
	p, _ = unread(t, apierrors.NewForbidden(resource, "ctr", forbidden), create)
	g.Expect(p.Reason).To(Equal(v1beta1.ReasonNetworkPolicyForbidden))
	g.Expect(p.Class).To(Equal(kube.Wait))
	g.Expect(p.Message).To(And(HavePrefix("spec.networkPolicy: the operator may not create a NetworkPolicy: "),
		ContainSubstring("Apply the component config/components/job-network-policy, and the job continues within 30 s")))
	p, _ = unread(t, apierrors.NewForbidden(resource, "ctr", errors.New("denied by policy")), create)
	g.Expect(p.Reason).To(Equal(v1beta1.ReasonRejected), "what others forbid is another matter")
}
