// Package webhook admits jobs, merges and profiles by what their schema cannot check: the user who writes them, and other
// objects. It also maintains the certificate of the webhook server.
package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity/outlook"
	"github.com/tideline-io/tideline/internal/platform/claimcache"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// The webhooks are called for creations, and for changes that they judge (config/webhook/conditions.yaml has the conditions,
// which no marker can express). So to suspend, annotate, scale or delete a job, also by garbage collection, needs no webhook.
//
// +kubebuilder:webhookconfiguration:mutating=true,name=tideline-mutating-webhook
// +kubebuilder:webhookconfiguration:mutating=false,name=tideline-validating-webhook
// +kubebuilder:webhook:mutating=true,name=default.elastictrainingjobs.tideline.io,path=/default-elastictrainingjob,serviceName=tideline-webhook,serviceNamespace=tideline-system,groups=tideline.io,versions=v1beta1,resources=elastictrainingjobs,verbs=create;update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1,reinvocationPolicy=Never
// +kubebuilder:webhook:mutating=false,name=validate.elastictrainingjobs.tideline.io,path=/validate-elastictrainingjob,serviceName=tideline-webhook,serviceNamespace=tideline-system,groups=tideline.io,versions=v1beta1,resources=elastictrainingjobs,verbs=create;update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=true,name=default.mergejobs.tideline.io,path=/default-mergejob,serviceName=tideline-webhook,serviceNamespace=tideline-system,groups=tideline.io,versions=v1beta1,resources=mergejobs,verbs=create;update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1,reinvocationPolicy=Never
// +kubebuilder:webhook:mutating=false,name=validate.mergejobs.tideline.io,path=/validate-mergejob,serviceName=tideline-webhook,serviceNamespace=tideline-system,groups=tideline.io,versions=v1beta1,resources=mergejobs,verbs=create;update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=false,name=validate.resourcequotaprofiles.tideline.io,path=/validate-resourcequotaprofile,serviceName=tideline-webhook,serviceNamespace=tideline-system,groups=tideline.io,versions=v1beta1,resources=resourcequotaprofiles,verbs=create;update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1
// +kubebuilder:webhook:mutating=true,name=approve.tideline.io,path=/approve,serviceName=tideline-webhook,serviceNamespace=tideline-system,groups=tideline.io,versions=v1beta1,resources=elastictrainingjobs;mergejobs,verbs=update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1,reinvocationPolicy=Never
// +kubebuilder:webhook:mutating=false,name=approval.tideline.io,path=/validate-approval,serviceName=tideline-webhook,serviceNamespace=tideline-system,groups=tideline.io,versions=v1beta1,resources=elastictrainingjobs;mergejobs,verbs=update,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=tideline-mutating-webhook,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=tideline-validating-webhook,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",namespace=tideline-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=tideline-system,resources=secrets,resourceNames=tideline-webhook-certs,verbs=get;list;watch;update

const (
	// MutatingConfiguration and ValidatingConfiguration are the names of the objects by which the API server knows the webhooks.
	MutatingConfiguration   = "tideline-mutating-webhook"
	ValidatingConfiguration = "tideline-validating-webhook"
	// CertificatesName is the name of the Secret, in the operator's namespace, with the certificates that the operator makes.
	CertificatesName = "tideline-webhook-certs"

	defaultJobPath, validateJobPath     = "/default-elastictrainingjob", "/validate-elastictrainingjob"
	defaultMergePath, validateMergePath = "/default-mergejob", "/validate-mergejob"
	validateProfilePath                 = "/validate-resourcequotaprofile"
	approvePath, validateApprovalPath   = "/approve", "/validate-approval"
)

// CachedObjects limits the manager's cache to the objects with the certificates, each by its name.
func CachedObjects(namespace string) map[client.Object]cache.ByObject {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{namespace: {}}, Field: named(CertificatesName)},
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   {Field: named(MutatingConfiguration)},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Field: named(ValidatingConfiguration)},
	}
}

// Setup adds the webhooks to the manager, which is ready once they can be called. namespace is the operator's own. Every replica
// serves webhooks and maintains the certificates, whether it leads or not. Dry runs are told what tellers say. now is the API
// server's clock, by which approvals are dated.
func Setup(
	mgr ctrl.Manager, cfg *config.Configuration, namespace string, claims *claimcache.Reader, tellers outlook.Tellers,
	now func() time.Time,
) error {
	host, port, err := config.SplitAddress(cfg.Webhooks.BindAddress)
	if err != nil {
		return fmt.Errorf("serve webhooks at %s: %w", cfg.Webhooks.BindAddress, err)
	}
	served := webhook.Options{
		Host: host, Port: port, CertDir: cfg.Webhooks.Certificates.Directory, TLSOpts: []func(*tls.Config){separateReviews},
	}
	if cfg.Webhooks.Certificates.Mode == config.CertificatesRotate {
		certs := newCertificates(mgr.GetClient(), mgr.GetAPIReader(), client.ObjectKey{Namespace: namespace, Name: CertificatesName})
		if err := certs.addTo(mgr); err != nil {
			return fmt.Errorf("set up the certificates of the webhooks: %w", err)
		}
		served.TLSOpts = append(served.TLSOpts, func(c *tls.Config) { c.GetCertificate = certs.currentCertificate })
		if err := mgr.AddReadyzCheck("webhook-certificates", func(*http.Request) error { return certs.checkReady() }); err != nil {
			return err
		}
	}
	if cfg.Webhooks.ClientCAFile != "" {
		require, err := requireClients(cfg.Webhooks.ClientCAFile)
		if err != nil {
			return err
		}
		served.TLSOpts = append(served.TLSOpts, require)
	}
	server := webhook.NewServer(served)
	for path, hook := range webhookHandlers(mgr.GetClient(), cfg, claims, tellers, now, newGate()) {
		server.Register(path, hook)
	}
	if err := mgr.Add(server); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhooks", latchHealthy(server.StartedChecker()))
}

// separateReviews has each review come on a connection of its own. By HTTP/2 an API server sends all on one, which has a window
// of a megabyte: while large reviews of one user wait there for memory, small ones of others would not arrive.
func separateReviews(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }

// webhookHandlers are the handlers of all webhooks by path.
func webhookHandlers(
	c client.Client, cfg *config.Configuration, claims *claimcache.Reader, tellers outlook.Tellers, now func() time.Time, g *gate,
) map[string]http.Handler {
	created, changed := reflect.TypeFor[newJob](), reflect.TypeFor[Approvable]()
	a := &approver{client: c, config: cfg, now: now}
	return map[string]http.Handler{
		defaultJobPath:       g.guardHandler(created, &completer{c, forTraining}),
		defaultMergePath:     g.guardHandler(created, &completer{c, forMerge}),
		validateJobPath:      g.guardHandler(reflect.TypeFor[v1beta1.ElasticTrainingJob](), newJobValidator(c, cfg, claims, tellers)),
		validateMergePath:    g.guardHandler(reflect.TypeFor[v1beta1.MergeJob](), newMergeValidator(c, cfg)),
		validateProfilePath:  g.guardHandler(reflect.TypeFor[v1beta1.ResourceQuotaProfile](), &sharesValidator{c, tellers.Change}),
		approvePath:          g.guardHandler(changed, admission.HandlerFunc(a.recordApprover)),
		validateApprovalPath: g.guardHandler(changed, admission.HandlerFunc(a.checkRecords)),
	}
}

// requireClients makes the server demand a client certificate that an authority of this file signed. TLS rejects a caller
// without one before it can send a request.
func requireClients(file string) (func(*tls.Config), error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("webhooks.clientCAFile: %w: mount the file, or leave the setting out", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("webhooks.clientCAFile: %s contains no PEM certificate: write the certificate of the authority "+
			"that signed "+
			"the API server's client certificate", file)
	}
	return func(c *tls.Config) { c.ClientCAs, c.ClientAuth = authorities, tls.RequireAndVerifyClientCert }, nil
}

// latchHealthy checks until the first success, and then always succeeds. The check connects to the server without a
// certificate. If the server demands one, it would log an error for each check.
func latchHealthy(check healthz.Checker) healthz.Checker {
	var well atomic.Bool
	return func(r *http.Request) error {
		if well.Load() {
			return nil
		}
		err := check(r)
		well.Store(err == nil)
		return err
	}
}
