package doctor

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/config/rbac"
)

func (f *Facts) deployment() client.ObjectKey {
	return client.ObjectKey{Namespace: f.Namespace, Name: "tideline-controller-manager"}
}

func (f *Facts) lease() client.ObjectKey {
	return client.ObjectKey{Namespace: f.Namespace, Name: rbac.Lease}
}

// longestSilence is how long nobody renews the Lease while all is well: the next operator takes it within seconds, and the clocks
// of whoever asks and of the operator differ.
const longestSilence = time.Minute

// Replicas are how many pods a Deployment wants, and how many of them are ready.
type Replicas struct{ Wanted, Ready int32 }

// operator judges whether somebody does the work. An operator may run beside the cluster, and without a Lease: that is no fault.
func operator(f Facts) Finding {
	switch {
	case f.Operator != nil && f.Operator.Ready < max(f.Operator.Wanted, 1):
		return Finding{
			What: fmt.Sprintf("Deployment %s has %d of %d replicas ready; while none is, nobody can create jobs, and no lost worker "+
				"comes back.", f.deployment(), f.Operator.Ready, f.Operator.Wanted),
			Do: fmt.Sprintf("See why, by kubectl describe --namespace %s deployment,pods, and in the log of its pods.",
				f.Namespace),
		}
	case f.LeaseSilence != nil && *f.LeaseSilence > longestSilence:
		return Finding{
			What: fmt.Sprintf("No operator leads: Lease %s was last renewed %s ago.", f.lease(), f.LeaseSilence.Round(time.Second)),
			Do:   "See the operator's log, or start it. Where it runs without --leader-elect, delete the Lease.",
		}
	case f.Operator == nil && f.LeaseSilence == nil:
		return Finding{OK: true, What: fmt.Sprintf("Whether an operator runs is not known here: there is no Deployment %s and "+
			"no Lease %s.", f.deployment(), f.lease())}
	case f.Operator == nil:
		return Finding{OK: true, What: fmt.Sprintf("An operator leads; it is of no Deployment %s.", f.deployment())}
	}
	return Finding{OK: true, What: fmt.Sprintf("The operator is ready (%d of %d replicas).", f.Operator.Ready, f.Operator.Wanted)}
}

func gatherOperator(ctx context.Context, c client.Client, f *Facts) error {
	deployment := &appsv1.Deployment{}
	switch err := c.Get(ctx, f.deployment(), deployment); {
	case err == nil:
		// The API server sets replicas where nobody does.
		f.Operator = &Replicas{Wanted: ptr.Deref(deployment.Spec.Replicas, 1), Ready: deployment.Status.ReadyReplicas}
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read Deployment %s: %w", f.deployment(), err)
	}
	lease := &coordinationv1.Lease{}
	switch err := c.Get(ctx, f.lease(), lease); {
	case err == nil:
		renewed := ptr.Deref(lease.Spec.RenewTime, metav1.NewMicroTime(lease.CreationTimestamp.Time))
		f.LeaseSilence = ptr.To(time.Since(renewed.Time))
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read Lease %s: %w", f.lease(), err)
	}
	return nil
}
