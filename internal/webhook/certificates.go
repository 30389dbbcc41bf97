package webhook

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	caName       = "tideline-webhook-ca"
	caLife       = 10 * 365 * 24 * time.Hour
	servingLife  = 365 * 24 * time.Hour
	renewBefore  = 90 * 24 * time.Hour
	lookInterval = 12 * time.Hour
	// skew is how far the API server's clock may be behind.
	skew = 24 * time.Hour
	// againInterval is the wait after another replica wrote first.
	againInterval = time.Second
)

// The keys of the Secret are those of cert-controller, whose code makes the certificates.
const caCert, caKey, servingCert, servingKey = "ca.crt", "ca.key", corev1.TLSCertKey, corev1.TLSPrivateKeyKey

// ConfigurationObjects are the objects that contain the CA of the webhooks, with nothing but their names.
func ConfigurationObjects() []client.Object {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	mutating.Name = MutatingConfiguration
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	validating.Name = ValidatingConfiguration
	return []client.Object{mutating, validating}
}

// certificates maintains the certificate of the webhooks: in a Secret for all replicas and for restarts, in memory to serve
// it, and its CA in the webhook configurations. It restores any of these at once when it is changed or deleted.
type certificates struct {
	client client.Client
	// live reads without a cache, so that no cache holds the private keys.
	live   client.Reader
	secret client.ObjectKey
	now    func() time.Time

	mu      sync.Mutex
	serving *tls.Certificate
	// problem is why the API server cannot call the webhooks; nil if it can.
	problem error
}

func newCertificates(c client.Client, live client.Reader, secret client.ObjectKey) *certificates {
	return &certificates{
		client: c, live: live, secret: secret, now: time.Now, problem: errors.New("the webhook certificate does not exist yet"),
	}
}

// addTo adds the certificates to the manager as a controller that runs in every replica.
func (c *certificates) addTo(mgr ctrl.Manager) error {
	keeper, err := controller.New("webhook-certificates", mgr, controller.Options{
		Reconciler:         c,
		NeedLeaderElection: ptr.To(false),
		LogConstructor:     func(*reconcile.Request) logr.Logger { return mgr.GetLogger().WithName("webhook-certificates") },
	})
	if err != nil {
		return err
	}
	once := reconcile.Request{NamespacedName: c.secret}
	watch := func(kind schema.GroupVersionKind) error {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		return keeper.Watch(source.Kind(mgr.GetCache(), object, handler.TypedEnqueueRequestsFromMapFunc(
			func(context.Context, *metav1.PartialObjectMetadata) []reconcile.Request {
				return []reconcile.Request{once}
			},
		), predicate.TypedResourceVersionChangedPredicate[*metav1.PartialObjectMetadata]{}))
	}
	first := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(once)
		return nil
	})
	registration := admissionregistrationv1.SchemeGroupVersion
	return errors.Join(keeper.Watch(first),
		watch(corev1.SchemeGroupVersion.WithKind("Secret")),
		watch(registration.WithKind("MutatingWebhookConfiguration")), watch(registration.WithKind("ValidatingWebhookConfiguration")))
}

// Reconcile restores Secret, served certificate and CA.
func (c *certificates) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	problem := c.keepValid(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = problem
	switch {
	case apierrors.IsConflict(problem), apierrors.IsAlreadyExists(problem):
		return reconcile.Result{RequeueAfter: againInterval}, nil // Another replica wrote the same first.
	case apierrors.IsNotFound(problem):
		ctrl.LoggerFrom(ctx).Info("Webhook configuration not found, waiting for it", "reason", problem.Error())
		return reconcile.Result{}, nil // The watch reports when it is created.
	}
	return reconcile.Result{RequeueAfter: lookInterval}, problem
}

func (c *certificates) keepValid(ctx context.Context) error {
	called := ConfigurationObjects()
	var hosts []string
	for _, o := range called {
		if err := c.live.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return fmt.Errorf("read %T %s: %w", o, o.GetName(), err)
		}
		for _, config := range ClientConfigs(o) {
			if host := hostOf(config); !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	data, err := c.ensureStored(ctx, hosts)
	if err != nil {
		return err
	}
	serving, err := tls.X509KeyPair(data[servingCert], data[servingKey])
	if err != nil {
		return fmt.Errorf("read the certificate in Secret %s: %w", c.secret, err)
	}
	c.setServing(&serving)
	for _, o := range called {
		if err := c.trustCA(ctx, o, data[caCert]); err != nil {
			return err
		}
	}
	return nil
}

// ClientConfigs are the addresses of the webhooks of a configuration.
func ClientConfigs(o client.Object) []*admissionregistrationv1.WebhookClientConfig {
	var all []*admissionregistrationv1.WebhookClientConfig
	switch o := o.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			all = append(all, &o.Webhooks[i].ClientConfig)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			all = append(all, &o.Webhooks[i].ClientConfig)
		}
	}
	return all
}

// hostOf is the host name under which the API server calls a webhook. The certificate must contain it.
func hostOf(config *admissionregistrationv1.WebhookClientConfig) string {
	if config.Service != nil {
		return config.Service.Name + "." + config.Service.Namespace + ".svc"
	}
	address, err := url.Parse(ptr.Deref(config.URL, ""))
	if err != nil {
		return "" // the API server accepts no such URL
	}
	return address.Hostname()
}

// ensureStored returns the content of the Secret, after it has replaced certificates that are missing, expire soon, or lack a
// host.
func (c *certificates) ensureStored(ctx context.Context, hosts []string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := c.live.Get(ctx, c.secret, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("read Secret %s: %w", c.secret, err)
	}
	data, err := renewExpiring(secret.Data, hosts, c.now())
	if err != nil || data == nil {
		return secret.Data, err
	}
	secret.Namespace, secret.Name, secret.Data = c.secret.Namespace, c.secret.Name, data
	if missing {
		err = c.client.Create(ctx, secret)
	} else {
		err = c.client.Update(ctx, secret) // with its resource version, so that one of several replicas succeeds
	}
	if err != nil {
		return nil, fmt.Errorf("write Secret %s: %w", c.secret, err)
	}
	ctrl.LoggerFrom(ctx).Info("Created the webhook certificate", "hosts", hosts, "secret", c.secret.String())
	return data, nil
}

// trustCA writes the CA into a webhook configuration, if it has another.
func (c *certificates) trustCA(ctx context.Context, o client.Object, ca []byte) error {
	wanted, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an API object", o)
	}
	changed := false
	for _, config := range ClientConfigs(wanted) {
		changed = changed || !bytes.Equal(config.CABundle, ca)
		config.CABundle = ca
	}
	if !changed {
		return nil
	}
	if err := c.client.Patch(ctx, wanted, client.StrategicMergeFrom(o)); err != nil {
		return fmt.Errorf("write the CA into %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

func (c *certificates) setServing(serving *tls.Certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving = serving
}

// currentCertificate is the certificate to serve, for tls.Config.GetCertificate.
func (c *certificates) currentCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serving == nil {
		return nil, c.problem
	}
	return c.serving, nil
}

func (c *certificates) checkReady() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem
}

// renewExpiring returns new certificates if the present ones are missing, invalid, about to expire or made for other hosts;
// nil if they are good. It keeps a valid CA: the API server trusts the certificates of the other replicas by it.
func renewExpiring(data map[string][]byte, hosts []string, now time.Time) (map[string][]byte, error) {
	if len(hosts) == 0 {
		return nil, errors.New("no webhook is configured in " + MutatingConfiguration + " and " + ValidatingConfiguration)
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	maker := rotator.CertRotator{
		CAName: caName, CAOrganization: "tideline.io", DNSName: hosts[0], ExtraDNSNames: hosts[1:], ExtKeyUsages: &usages,
	}
	valid := func(cert, key, host string, usages *[]x509.ExtKeyUsage) bool {
		ok, err := rotator.ValidCert(data[caCert], data[cert], data[key], host, usages, now.Add(renewBefore))
		return ok && err == nil
	}
	ca, err := readAuthority(data)
	if err != nil || !valid(caCert, caKey, caName, nil) {
		if ca, err = maker.CreateCACert(now.Add(-skew), now.Add(caLife)); err != nil {
			return nil, fmt.Errorf("make a CA: %w", err)
		}
	} else if !slices.ContainsFunc(hosts, func(host string) bool { return !valid(servingCert, servingKey, host, &usages) }) {
		return nil, nil
	}
	cert, key, err := maker.CreateCertPEM(ca, now.Add(-skew), now.Add(servingLife))
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return map[string][]byte{caCert: ca.CertPEM, caKey: ca.KeyPEM, servingCert: cert, servingKey: key}, nil
}

// readAuthority reads the CA of a Secret.
func readAuthority(data map[string][]byte) (*rotator.KeyPairArtifacts, error) {
	pair, err := tls.X509KeyPair(data[caCert], data[caKey])
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("the key is not RSA")
	}
	return &rotator.KeyPairArtifacts{Cert: pair.Leaf, Key: key, CertPEM: data[caCert], KeyPEM: data[caKey]}, nil
}
