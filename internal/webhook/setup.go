// Package webhook admits jobs by what their schema cannot know: who creates them, and what other objects say. It also keeps the
// certificate by which the API server knows the operator.
package webhook

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/internal/config"
)

// Deletion is not watched, and changes are not: an owner cannot change (CEL), so whoever edits, scales or deletes a job, garbage
// collection among them, depends on no webhook.
//
// +kubebuilder:webhookconfiguration:mutating=true,name=tideline-mutating-webhook
// +kubebuilder:webhookconfiguration:mutating=false,name=tideline-validating-webhook
// +kubebuilder:webhook:mutating=true,name=default.elastictrainingjobs.tideline.io,path=/default-elastictrainingjob,serviceName=tideline-webhook,serviceNamespace=tideline-system,groups=tideline.io,versions=v1alpha1,resources=elastictrainingjobs,verbs=create,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1,reinvocationPolicy=Never
// +kubebuilder:webhook:mutating=false,name=validate.elastictrainingjobs.tideline.io,path=/validate-elastictrainingjob,serviceName=tideline-webhook,serviceNamespace=tideline-system,groups=tideline.io,versions=v1alpha1,resources=elastictrainingjobs,verbs=create,failurePolicy=fail,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=10,admissionReviewVersions=v1

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

	defaultPath, validatePath = "/default-elastictrainingjob", "/validate-elastictrainingjob"
)

// Where certificates come from.
const (
	certsRotate = "rotate"
	certsFiles  = "files"
)

// Options are the flags about webhooks.
type Options struct {
	// Enabled is false for an operator without webhooks.
	Enabled bool

	address, certs, certDir string
}

// AddFlags adds the flags to a set.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Enabled, "webhooks", true,
		"serve the admission webhooks of config/webhook; without them jobs get no owner by themselves, and nobody checks the owners "+
			"that they name")
	flags.StringVar(&o.address, "webhook-bind-address", ":9443", "address that serves the webhooks")
	flags.StringVar(&o.certs, "webhook-certs", certsRotate,
		`where the webhooks' certificate comes from: "rotate", the operator makes and renews it, keeps it in Secret `+CertificatesName+
			` and writes its CA into the webhook configurations; "files", others do and mount it (OLM, cert-manager)`)
	flags.StringVar(&o.certDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs",
		"folder with tls.crt and tls.key, with --webhook-certs=files; files that change are read again")
}

// CachedObjects says how the manager's cache holds what tells of the certificates: each object by its name alone.
func CachedObjects(namespace string) map[client.Object]cache.ByObject {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{namespace: {}}, Field: named(CertificatesName)},
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   {Field: named(MutatingConfiguration)},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Field: named(ValidatingConfiguration)},
	}
}

// Setup adds the webhooks to the manager, which is ready only when they can be called. Namespace is the operator's own. Every
// replica serves them and keeps the certificates, whoever leads.
func Setup(mgr ctrl.Manager, tiers config.Tiers, namespace string, o Options) error {
	host, port, err := hostPort(o.address)
	if err != nil {
		return fmt.Errorf("--webhook-bind-address=%s: %w", o.address, err)
	}
	served := webhook.Options{Host: host, Port: port, CertDir: o.certDir}
	switch o.certs {
	case certsFiles:
	case certsRotate:
		certs := newCertificates(mgr.GetClient(), mgr.GetAPIReader(), client.ObjectKey{Namespace: namespace, Name: CertificatesName})
		if err := certs.addTo(mgr); err != nil {
			return fmt.Errorf("set up the certificates of the webhooks: %w", err)
		}
		served.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = certs.current }}
		if err := mgr.AddReadyzCheck("webhook-certificates", func(*http.Request) error { return certs.ready() }); err != nil {
			return err
		}
	default:
		return fmt.Errorf("--webhook-certs=%s: it must be %s or %s", o.certs, certsRotate, certsFiles)
	}
	server := webhook.NewServer(served)
	server.Register(defaultPath, &admission.Webhook{Handler: admission.HandlerFunc(defaultOwner)})
	server.Register(validatePath, &admission.Webhook{Handler: &validator{client: mgr.GetClient(), tiers: tiers}})
	if err := mgr.Add(server); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhooks", server.StartedChecker())
}

func hostPort(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(text)
	if err == nil && (port < 1 || port > 65535) {
		err = errors.New("the port must be from 1 to 65535")
	}
	return host, port, err
}
