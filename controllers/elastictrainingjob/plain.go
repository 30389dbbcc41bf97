package elastictrainingjob

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/elastic"
	"github.com/tideline-io/tideline/internal/kube"
	"github.com/tideline-io/tideline/internal/rendezvous"
	"github.com/tideline-io/tideline/internal/sshkey"
)

// What jobs without torchrun have: a ConfigMap with the names of the workers, and a Secret with a key pair.

// observeHosts reads the ConfigMap of a job that needs one.
func (r *Reconciler) observeHosts(ctx context.Context, o *elastic.Observed) error {
	if rendezvous.Torchrun(o.Job) {
		return nil
	}
	m := &corev1.ConfigMap{}
	found, err := r.owned(ctx, o.Job, rendezvous.HostsName(o.Job.Name), m)
	if found && err == nil && m.DeletionTimestamp == nil {
		o.Hosts = &elastic.Hosts{UID: m.UID, Data: m.Data}
	}
	return err
}

func (r *Reconciler) writeHosts(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	if d.WriteHosts == nil {
		return nil
	}
	m := d.Blueprint.HostsMap(d.WriteHosts.Data)
	if d.WriteHosts.UID == "" {
		return failed(r.create(ctx, o, m), "create ConfigMap "+m.Name)
	}
	return failed(r.serverSideApply(ctx, o, map[string]any{
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

// createSSHKeys creates the key pair. The operator may create Secrets and read none, so it cannot look whether there is one: a
// Secret of that name is this job's own, because its UID is in the name.
func (r *Reconciler) createSSHKeys(ctx context.Context, o elastic.Observed, d elastic.Decision) *problem {
	if !d.CreateSSHKeys {
		return nil
	}
	private, public, err := sshkey.New(o.Job.Namespace + "/" + o.Job.Name)
	if err != nil {
		return failed(err, "make an ssh key pair")
	}
	secret := d.Blueprint.SSHSecret(private, public)
	err = r.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	p := failed(err, "create Secret "+secret.Name)
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource") {
		p.Diagnosis = kube.Diagnosis{Class: kube.Wait, Reason: v1alpha1.ReasonSSHKeysForbidden, Message: "rendezvous.sshKeys: the " +
			"operator may not create Secrets: " + err.Error() + ". Apply the component config/components/ssh-keys, or create the job " +
			"without sshKeys; the job goes on by itself within half a minute after the right was given."}
	}
	return p
}
