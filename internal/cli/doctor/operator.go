package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	run := fmt.Sprintf("kubectl logs --namespace %s deployment/%s", f.Namespace, f.deployment().Name)
	if f.Local {
		start, run = "Start it: make run. If it runs with --leader-elect=false, delete the Lease.", "make run"
	}
	switch {
	case f.OtherLeader != "":
		other := client.ObjectKey{Namespace: kube.OutsideNamespace, Name: rbac.Lease}
		return Finding{
			What: fmt.Sprintf("Two operators act at the same time: %s by Lease %s, and %s by Lease %s.", f.Leader, f.lease(),
				f.OtherLeader, other),
			Do:  "End the second, which runs outside the cluster. Started again, it waits until the first ends.",
			Run: fmt.Sprintf("kubectl get lease --namespace %s %s -o yaml", other.Namespace, other.Name),
		}
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
			Run:  run,
		}
	case f.Operator == nil && f.LeaseSilence == nil:
		return Finding{Level: Unknown, What: fmt.Sprintf("Whether an operator runs: there is no Deployment %s and no Lease %s.",
			f.deployment(), f.lease())}
	case f.Operator == nil && f.Leader == "":
		return Finding{
			What: fmt.Sprintf("No operator leads: the last one ended %s ago (Lease %s).", f.LeaseSilence.Round(time.Second), f.lease()),
			Do:   start,
			Run:  run,
		}
	case f.Operator == nil:
		return Finding{Level: OK, What: fmt.Sprintf("An operator outside the cluster leads (%s).", f.Leader)}
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
	return gatherLeases(ctx, c, f)
}

// gatherLeases reads the Lease in the operator's namespace, and the one of an operator outside the cluster.
func gatherLeases(ctx context.Context, c client.Client, f *Facts) error {
	for _, namespace := range slices.Compact([]string{f.Namespace, kube.OutsideNamespace}) {
		lease := &coordinationv1.Lease{}
		key := client.ObjectKey{Namespace: namespace, Name: rbac.Lease}
		switch err := c.Get(ctx, key, lease); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("read Lease %s: %w", key, err)
		}
		renewed := ptr.Deref(lease.Spec.RenewTime, metav1.NewMicroTime(lease.CreationTimestamp.Time))
		silence, leader := time.Since(renewed.Time), ptr.Deref(lease.Spec.HolderIdentity, "")
		outside := namespace != f.Namespace
		led := leader != "" && silence <= longestSilence
		switch {
		case outside && led && f.LeaseSilence != nil && *f.LeaseSilence <= longestSilence && f.Leader != "":
			f.OtherLeader = leader
		case outside && !led && (f.Operator != nil || f.LeaseSilence != nil):
			// It was left by an operator that ran there before the installation.
		default:
			f.LeaseNamespace, f.LeaseSilence, f.Leader = namespace, &silence, leader
		}
	}
	return nil
}
