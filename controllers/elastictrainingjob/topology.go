package elastictrainingjob

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/topology"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

// observeTopology reads which HyperNodes the whole core is in, for a job that may grow near it; none while a worker of the core
// has no node.
func (r *Reconciler) observeTopology(
	ctx context.Context, job *v1beta1.ElasticTrainingJob, workers []podstate.Worker,
) ([]trainingpod.Near, error) {
	a := job.Status.Attempt
	if job.Spec.NetworkTopology == nil || a == nil || a.MaxReplicas <= a.MinReplicas {
		return nil, nil
	}
	var nodes []string
	for i := range workers {
		if w := &workers[i]; w.Attempt == a.ID() && w.Index < a.MinReplicas && w.Node != "" {
			nodes = append(nodes, w.Node)
		}
	}
	if len(nodes) < int(a.MinReplicas) {
		return nil, nil
	}
	domains, err := r.HyperNodes.ReadDomains(ctx)
	if err != nil {
		return nil, err
	}
	var near []trainingpod.Near
	for _, d := range topology.DomainsAround(domains, nodes) {
		hosts, err := r.hostsOf(ctx, d.Nodes)
		if err != nil {
			return nil, err
		}
		near = append(near, trainingpod.Near{Tier: d.Tier, Hosts: hosts})
	}
	return near, nil
}

// observeStepHosts reads the host names of the nodes or HyperNodes in which the job may have more surplus than it has.
func (r *Reconciler) observeStepHosts(ctx context.Context, o *jobstate.Observed) error {
	within := o.Job.Spec.Elasticity.StepWithin
	if within == nil {
		return nil
	}
	have := map[string]int32{}
	for i := range o.Workers {
		if w := &o.Workers[i]; !w.HasEnded() && !w.Terminating {
			have[w.StepDomain]++
		}
	}
	var domains []topology.Domain
	o.StepHosts = map[string][]string{}
	for _, d := range o.Verdict.StepDomains {
		if have[d.Name] >= d.Workers {
			continue
		}
		nodes, tier := []string{d.Name}, within.DomainTier()
		if tier > 0 && domains == nil {
			var err error
			if domains, err = r.HyperNodes.ReadDomains(ctx); err != nil {
				return err
			}
		}
		if tier > 0 {
			nodes = topology.NodesOf(domains, tier, d.Name)
		}
		hosts, err := r.hostsOf(ctx, nodes)
		if err != nil {
			return err
		}
		o.StepHosts[d.Name] = hosts
	}
	return nil
}

// hostsOf are the host names of nodes, as pods select them.
func (r *Reconciler) hostsOf(ctx context.Context, nodes []string) ([]string, error) {
	hosts := make([]string, 0, len(nodes))
	for _, name := range nodes {
		node := &corev1.Node{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: name}, node, client.UnsafeDisableDeepCopy); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue // It went just now.
			}
			return nil, fmt.Errorf("read node %s: %w", name, err)
		}
		hosts = append(hosts, cmp.Or(node.Labels[corev1.LabelHostname], name))
	}
	return hosts, nil
}
