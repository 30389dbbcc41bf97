package config

import (
	"path/filepath"
	"slices"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/serverurl"
)

// Merges are what MergeJobs may name: users reach no other pool, and no other server through the operator.
type Merges struct {
	// Pools are the Volcano Queues that a MergeJob may name, one at least. Default: tideline-merge.
	Pools []string `json:"pools"`
	// Endpoints are the S3 servers that a store may name, each as scheme://host or scheme://host:port, and aws for AWS's own.
	// Default: aws.
	Endpoints []string `json:"endpoints"`
	// LocalStores is the folder of the operator's own file system in which the buckets of provider file must lie, an absolute path.
	// Default: none, so that the provider is refused.
	LocalStores string `json:"localStores"`
	// WaitingIntervalSeconds is how often the store of a merge that does not run is read, from 1 to 86400. Default: 600.
	WaitingIntervalSeconds int32 `json:"waitingIntervalSeconds"`
	// RunningIntervalSeconds is how often that of one that runs is looked at for its full model, from 1 to 3600. Default: 30.
	RunningIntervalSeconds int32 `json:"runningIntervalSeconds"`
}

// DefaultMerges returns what MergeJobs may name without configuration.
func DefaultMerges() Merges {
	return Merges{
		Pools: []string{"tideline-merge"}, Endpoints: []string{awsEndpoint}, WaitingIntervalSeconds: 600, RunningIntervalSeconds: 30,
	}
}

// awsEndpoint stands for the servers of AWS, which a store means that names no endpoint.
const awsEndpoint = "aws"

// AllowsPool tells whether a MergeJob may name the Queue.
func (m Merges) AllowsPool(name string) bool { return slices.Contains(m.Pools, name) }

// ProfileAllowsPool tells whether a MergeJob of a namespace of the profile may name the Queue, as far as the profile goes: any
// for a profile that lists none, and for none.
func ProfileAllowsPool(profile *v1alpha1.ResourceQuotaProfile, pool string) bool {
	return profile == nil || profile.Spec.Merges == nil || len(profile.Spec.Merges.Pools) == 0 ||
		slices.Contains(profile.Spec.Merges.Pools, pool)
}

// AllowsEndpoint tells whether a store may name the server; empty for AWS's own. Two URLs are of one server whatever the case of
// their letters, and with the port of their scheme or without it.
func (m Merges) AllowsEndpoint(server string) bool {
	if server == "" {
		return slices.Contains(m.Endpoints, awsEndpoint)
	}
	asked, ok := serverurl.Parse(server)
	return ok && slices.ContainsFunc(m.Endpoints, func(e string) bool {
		allowed, ok := serverurl.Parse(e)
		return ok && allowed == asked
	})
}

// AllowsLocal tells whether a bucket of provider file may be at the path: in LocalStores, or that folder itself, as the paths are
// written. What links there may lead to is for who opens it to see.
func (m Merges) AllowsLocal(bucket string) bool {
	if m.LocalStores == "" || !filepath.IsAbs(bucket) {
		return false
	}
	below, err := filepath.Rel(m.LocalStores, bucket)
	return err == nil && filepath.IsLocal(below)
}
