package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

func (f *Facts) deployment() client.ObjectKey {
	return client.ObjectKey{Namespace: f.Namespace, Name: "tideline-controller-manager"}
}

func (f *Facts) lease() client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(f.LeaseNamespace, f.Namespace), Name: rbac.Lease}
}

// longestSilence is for how long the Lease may go without being renewed while all is well: the next operator takes it within
// seconds, and the clocks of this machine and of the operator's differ.
const longestSilence = time.Minute

// Replicas are how many pods a Deployment wants, and how many of them are ready.
type Replicas struct{ Wanted, Ready int32 }

// operator judges whether an operator does the work. One may run outside the cluster, and without a Lease: neither is wrong.
func operator(f Facts) Finding {
	start := "See the operator's log, or start it. If it runs with --leader-elect=false, delete the Lease."
	if f.Local {
		start = "Start it: make run. If it runs with --leader-elect=false, delete the Lease."
	}
	switch {
	case f.Operator != nil && f.Operator.Ready < max(f.Operator.Wanted, 1):
		return Finding{
			What: fmt.Sprintf("Deployment %s has %d of %d replicas ready. With none, no job can be created and no lost worker is "+
				"replaced.",
				f.deployment(), f.Operator.Ready, f.Operator.Wanted),
			Do: fmt.Sprintf("See why, by kubectl describe --namespace %s deployment,pods, and in the log of its pods.",
				f.Namespace),
		}
	case f.LeaseSilence != nil && *f.LeaseSilence > longestSilence:
		return Finding{
			What: fmt.Sprintf("No operator leads: Lease %s was last renewed %s ago.", f.lease(), f.LeaseSilence.Round(time.Second)),
			Do:   start,
		}
	case f.Operator == nil && f.LeaseSilence == nil:
		return Finding{Level: Unknown, What: fmt.Sprintf("Whether an operator runs: there is no Deployment %s and no Lease %s.",
			f.deployment(), f.lease())}
	case f.Operator == nil:
		return Finding{Level: OK, What: fmt.Sprintf("An operator outside the cluster leads (%s).",
			cmp.Or(f.Leader, "it has just ended"))}
	}
	return Finding{Level: OK, What: fmt.Sprintf("The operator is ready (%d of %d replicas).", f.Operator.Ready, f.Operator.Wanted)}
}

func gatherOperator(ctx context.Context, c client.Client, f *Facts) error {
	deployment := &appsv1.Deployment{}
	switch err := c.Get(ctx, f.deployment(), deployment); {
	case err == nil:
		// The API server sets replicas if no manifest does.
		f.Operator = &Replicas{Wanted: ptr.Deref(deployment.Spec.Replicas, 1), Ready: deployment.Status.ReadyReplicas}
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read Deployment %s: %w", f.deployment(), err)
	}
	account := &corev1.ServiceAccount{}
	switch err := c.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: rbac.ServiceAccount}, account); {
	case apierrors.IsNotFound(err):
		f.Local = f.Operator == nil && len(f.MissingWebhooks) == allConfigurations
	case err != nil:
		return fmt.Errorf("read the operator's ServiceAccount: %w", err)
	}
	for _, f.LeaseNamespace = range []string{f.Namespace, kube.OutsideNamespace} {
		lease := &coordinationv1.Lease{}
		switch err := c.Get(ctx, f.lease(), lease); {
		case err == nil:
			renewed := ptr.Deref(lease.Spec.RenewTime, metav1.NewMicroTime(lease.CreationTimestamp.Time))
			f.LeaseSilence, f.Leader = ptr.To(time.Since(renewed.Time)), ptr.Deref(lease.Spec.HolderIdentity, "")
			return nil
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("read Lease %s: %w", f.lease(), err)
		}
	}
	f.LeaseNamespace = ""
	return nil
}
