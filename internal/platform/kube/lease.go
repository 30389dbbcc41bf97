package kube

import (
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OutsideNamespace has the Lease of operators that run outside a cluster without the namespace of an installation.
const OutsideNamespace = "default"

// ownWebhook ends the names of Tideline's webhooks, however their configurations are called.
const ownWebhook = ".tideline.io"

// LeaseNamespace is where an operator outside the cluster looks for the Lease: in the namespace of the installation, so that it
// does not act beside an operator there; in [OutsideNamespace] where there is none. The installation is in the namespace that
// Tideline's webhooks call, or in the one that is given if there are no webhooks.
func LeaseNamespace(ctx context.Context, c client.Reader, installation string) string {
	configurations := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	_ = c.List(ctx, configurations) // Who may not list them has the installation's usual namespace.
	for _, configuration := range configurations.Items {
		for _, w := range configuration.Webhooks {
			if strings.HasSuffix(w.Name, ownWebhook) && w.ClientConfig.Service != nil {
				return w.ClientConfig.Service.Namespace
			}
		}
	}
	err := c.Get(ctx, client.ObjectKey{Name: installation}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		return OutsideNamespace
	}
	return installation // Also if it cannot be asked for: the Lease says then what is wrong.
}

// patience is how long an operator that is to lead waits before it says who leads instead.
const patience = 5 * time.Second

// SayWhoLeads logs who has the Lease, unless this operator leads soon. It returns once either is so, or when the context ends.
func SayWhoLeads(ctx context.Context, c client.Reader, lease client.ObjectKey, elected <-chan struct{}, log logr.Logger) {
	select {
	case <-elected:
		return
	case <-ctx.Done():
		return
	case <-time.After(patience):
	}
	held := &coordinationv1.Lease{}
	if err := c.Get(ctx, lease, held); err != nil {
		log.Error(err, "This operator waits until it leads, and cannot read the Lease", "lease", lease.String())
		return
	}
	log.Info("Another operator leads. This one waits until that one ends, and changes nothing meanwhile", "lease", lease.String(),
		"leader", ptr.Deref(held.Spec.HolderIdentity, ""))
}
