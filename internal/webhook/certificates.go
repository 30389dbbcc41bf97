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
	skew = time.Hour
	// againInterval is the wait after another replica wrote first.
	againInterval = time.Second
)

// The keys of the Secret, which are cert-controller's.
const caCert, caKey, servingCert, servingKey = "ca.crt", "ca.key", corev1.TLSCertKey, corev1.TLSPrivateKeyKey

// Configurations are the objects that hold the CA by which the API server knows the webhooks, with nothing but their names.
func Configurations() []client.Object {
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	mutating.Name = MutatingConfiguration
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	validating.Name = ValidatingConfiguration
	return []client.Object{mutating, validating}
}

// certificates keeps the certificate of the webhooks: in a Secret, for all replicas and for restarts; in memory, to serve it; and
// its CA in the webhook configurations. Whatever of these is changed or deleted is mended at once.
type certificates struct {
	client client.Client
	// live reads the Secret with the private keys, so that they are in no cache.
	live   client.Reader
	secret client.ObjectKey
	now    func() time.Time

	mu      sync.Mutex
	serving *tls.Certificate
	// problem is why the API server cannot call the webhooks; nil when it can.
	problem error
}

func newCertificates(c client.Client, live client.Reader, secret client.ObjectKey) *certificates {
	return &certificates{
		client: c, live: live, secret: secret, now: time.Now, problem: errors.New("the certificate is not there yet"),
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

// Reconcile mends what is not as it must be.
func (c *certificates) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	problem := c.keep(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = problem
	switch {
	case apierrors.IsConflict(problem), apierrors.IsAlreadyExists(problem):
		return reconcile.Result{RequeueAfter: againInterval}, nil // Another replica wrote first, and did the same.
	case apierrors.IsNotFound(problem):
		ctrl.LoggerFrom(ctx).Info("The API server calls no webhooks yet", "reason", problem.Error())
		return reconcile.Result{}, nil // The watch tells when it is there.
	}
	return reconcile.Result{RequeueAfter: lookInterval}, problem
}

func (c *certificates) keep(ctx context.Context) error {
	called := Configurations()
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
	data, err := c.stored(ctx, hosts)
	if err != nil {
		return err
	}
	serving, err := tls.X509KeyPair(data[servingCert], data[servingKey])
	if err != nil {
		return fmt.Errorf("read the certificate in Secret %s: %w", c.secret, err)
	}
	c.serve(&serving)
	for _, o := range called {
		if err := c.trust(ctx, o, data[caCert]); err != nil {
			return err
		}
	}
	return nil
}

// ClientConfigs say where the webhooks of a configuration are called.
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

// hostOf is the name by which the API server calls a webhook, and so the name that the certificate must have.
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

// stored returns what the Secret holds, once that is valid for the hosts for a while.
func (c *certificates) stored(ctx context.Context, hosts []string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := c.live.Get(ctx, c.secret, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("read Secret %s: %w", c.secret, err)
	}
	data, err := renew(secret.Data, hosts, c.now())
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
	ctrl.LoggerFrom(ctx).Info("Certificate made", "hosts", hosts, "secret", c.secret.String())
	return data, nil
}

// trust writes the CA into a webhook configuration that does not have it.
func (c *certificates) trust(ctx context.Context, o client.Object, ca []byte) error {
	wanted, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object of the API", o)
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

func (c *certificates) serve(serving *tls.Certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving = serving
}

// current is the certificate to serve, for tls.Config.GetCertificate.
func (c *certificates) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serving == nil {
		return nil, c.problem
	}
	return c.serving, nil
}

func (c *certificates) ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem
}

// renew returns certificates in place of those that are missing, broken, about to end or made for other hosts, and nil when there
// are none. The CA stays while it can, because the API server knows the others by it.
func renew(data map[string][]byte, hosts []string, now time.Time) (map[string][]byte, error) {
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
	ca, err := authority(data)
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

// authority reads the CA of a Secret.
func authority(data map[string][]byte) (*rotator.KeyPairArtifacts, error) {
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
