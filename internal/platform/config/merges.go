package config

import (
	"path/filepath"
	"slices"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/serverurl"
)

// DefaultPool is the pool of MergeJobs that name none. The operator creates its Queue with the first of them.
const DefaultPool = "tideline-merge"

// Merges are what MergeJobs may name: users reach no other pool, and no other server through the operator.
type Merges struct {
	// Pools are the Volcano Queues that a MergeJob may name, one at least. Default: tideline-merge.
	Pools []string `json:"pools"`
	// StrictPools are those of Pools in which no merge goes ahead of the head of the line. Default: none.
	StrictPools []string `json:"strictPools"`
	// Endpoints are the S3 servers that a store may name, each as scheme://host or scheme://host:port, and aws for AWS's own.
	// Default: aws.
	Endpoints []string `json:"endpoints"`
	// LocalStores is the folder of the operator's own file system in which stores of type File must lie, an absolute path.
	// Default: none, so that the type is refused.
	LocalStores string `json:"localStores"`
	// WaitingIntervalSeconds is how often the store of a merge that does not run is read, from 1 to 86400. Default: 600.
	WaitingIntervalSeconds int32 `json:"waitingIntervalSeconds"`
	// RunningIntervalSeconds is how often that of one that runs is looked at for its full model, from 1 to 3600. Default: 30.
	RunningIntervalSeconds int32 `json:"runningIntervalSeconds"`
}

// DefaultMerges returns what MergeJobs may name without configuration.
func DefaultMerges() Merges {
	return Merges{
		Pools: []string{DefaultPool}, StrictPools: []string{}, Endpoints: []string{awsEndpoint},
		WaitingIntervalSeconds: 600, RunningIntervalSeconds: 30,
	}
}

// awsEndpoint stands for the servers of AWS, which a store means that names no endpoint.
const awsEndpoint = "aws"

// AllowsPool is true if MergeJobs may name the Queue.
func (m Merges) AllowsPool(name string) bool { return slices.Contains(m.Pools, name) }

// IsStrict is true for a pool in which no merge goes ahead of the head of the line.
func (m Merges) IsStrict(pool string) bool { return slices.Contains(m.StrictPools, pool) }

// ProfileAllowsPool is true if the profile lets MergeJobs of its namespaces name the Queue. A profile that lists no pools
// allows all, and so does no profile.
func ProfileAllowsPool(profile *v1beta1.ResourceQuotaProfile, pool string) bool {
	return profile == nil || profile.Spec.Merges == nil || len(profile.Spec.Merges.Pools) == 0 ||
		slices.Contains(profile.Spec.Merges.Pools, pool)
}

// AllowsEndpoint is true if a store may name the server; empty means AWS's own. URLs are compared without case, and with or
// without the default port of their scheme.
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

// AllowsLocal is true if a store of type File may be at the path: LocalStores itself or below it, as the paths are
// written. The code that opens the bucket must check where links lead.
func (m Merges) AllowsLocal(bucket string) bool {
	if m.LocalStores == "" || !filepath.IsAbs(bucket) {
		return false
	}
	below, err := filepath.Rel(m.LocalStores, bucket)
	return err == nil && filepath.IsLocal(below)
}
