package elastictrainingjob

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
	"github.com/tideline-io/tideline/internal/training/sshkey"
)

// Objects that only some jobs have: a ConfigMap with the workers' names and a Secret with a key pair for jobs without torchrun,
// and a NetworkPolicy for isolated jobs.

// observeHosts reads the ConfigMap of a job that needs one.
func (r *Reconciler) observeHosts(ctx context.Context, o *jobstate.Observed) error {
	if rendezvous.UsesTorchrun(&o.Job.Spec) {
		return nil
	}
	m := &corev1.ConfigMap{}
	found, err := kube.IsOwned(ctx, r.client, o.Job, rendezvous.HostsName(o.Job.Name), m)
	if found && err == nil && m.DeletionTimestamp == nil {
		o.Hosts = &jobstate.Hosts{UID: m.UID, Digests: m.Data}
	}
	return err
}

func (r *Reconciler) writeHosts(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	if d.WriteHosts == nil {
		return nil
	}
	m := d.Blueprint.HostsMap(d.WriteHosts.Data)
	if d.WriteHosts.UID == "" {
		return kube.ProblemOf(r.createChild(ctx, o, m), "create ConfigMap "+m.Name)
	}
	return kube.ProblemOf(r.applier.Apply(ctx, client.ObjectKeyFromObject(o.Job), map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"namespace": m.Namespace, "name": m.Name, "uid": string(d.WriteHosts.UID)},
		"data":       anyValues(m.Data),
	}, &corev1.ConfigMap{}), "patch ConfigMap "+m.Name)
}

func anyValues(data map[string]string) map[string]any {
	values := make(map[string]any, len(data))
	for key, value := range data {
		values[key] = value
	}
	return values
}

// createSSHKeys creates the Secret with the key pair by which workers log in to each other.
func (r *Reconciler) createSSHKeys(ctx context.Context, o jobstate.Observed, d training.Decision) *kube.Problem {
	if !d.CreateSSHKeys {
		return nil
	}
	private, public, err := sshkey.New(o.Job.Namespace + "/" + o.Job.Name)
	if err != nil {
		return kube.ProblemOf(err, "make an ssh key pair")
	}
	return r.createUnread(ctx, d.Blueprint.SSHSecret(private, public), "Secret", v1beta1.ReasonSSHKeysForbidden,
		"framework.ssh", "ssh-keys")
}

// createNetworkPolicy creates the policy that isolates the job's workers.
func (r *Reconciler) createNetworkPolicy(ctx context.Context, _ jobstate.Observed, d training.Decision) *kube.Problem {
	if !d.CreateNetworkPolicy {
		return nil
	}
	return r.createUnread(ctx, d.Blueprint.NetworkPolicy(), "NetworkPolicy", v1beta1.ReasonNetworkPolicyForbidden,
		"networkPolicy", "job-network-policy")
}

// createUnread creates an object of a kind that the operator may create but not read; an optional component grants that right.
// If an object of that name exists it is this job's own, because the name includes the job's UID. reason, field and component
// tell the user what to install if the right is missing.
func (r *Reconciler) createUnread(ctx context.Context, o client.Object, kind, reason, field, component string) *kube.Problem {
	err := r.client.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	p := kube.ProblemOf(err, "create "+kind+" "+o.GetName())
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource") {
		p.Diagnosis = kube.Diagnosis{Class: kube.Wait, Reason: reason, Message: fmt.Sprintf("spec.%s: the operator may not create "+
			"a %s: %v. Apply the component config/components/%s, and the job continues within 30 s, or create the job without %[1]s.",
			field, kind, err, component)}
	}
	return p
}
