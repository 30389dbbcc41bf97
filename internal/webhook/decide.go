package webhook

import (
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/platform/schedule"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

const (
	// assignOwner is the verb on jobs of a kind that lets a user name somebody else as the owner of one.
	assignOwner = "assign-owner"
	// useAccount is the verb on serviceaccounts that lets a user who may not create pods have pods run as one.
	useAccount = "use"
)

// Creation says who creates which job.
type Creation struct {
	User string
	// Groups of the user.
	Groups []string
	// Job has no name yet if the API server is to generate one.
	Job types.NamespacedName
}

// Decision is what is said to somebody who creates a job.
type Decision struct {
	// Refused are the fields that are refused whoever creates the job.
	Refused field.ErrorList
	// Claims are what the job asks for that not everybody may.
	Claims []Claim
}

// Claim is something that a job asks for, and that takes a right of whoever creates it.
type Claim struct {
	// Rights are those of which one will do, in the order in which they are asked for.
	Rights []authorizationv1.ResourceAttributes
	// Refusal is what a user is told who has none of them.
	Refusal *field.Error
}

// words are how one kind of job is spoken of.
type words struct {
	// kind and resource are its names in the API, job and pods what people call it and its pods.
	kind, resource, job, pods string
}

var (
	forTraining = words{v1alpha1.ElasticTrainingJobKind, "elastictrainingjobs", "job", "workers"}
	forMerge    = words{v1alpha1.MergeJobKind, "mergejobs", "merge", "pods"}
)

// Rules are what jobs are held to besides their schema.
type Rules struct {
	Config *config.Configuration
	// Profile of the job's namespace; nil for a namespace that belongs to none.
	Profile *v1alpha1.ResourceQuotaProfile
}

// Decide judges what the schema of a job cannot: its tier, size and resources, by the operator's configuration and the profile of
// its namespace, and its owner and its ServiceAccount, by who creates it.
func Decide(job *v1alpha1.ElasticTrainingJob, by Creation, rules Rules) Decision {
	spec := &job.Spec
	var d Decision
	owner := ownership.Owner{User: spec.Owner, Groups: spec.OwnerGroups}
	if tier, fine := d.limit(spec.Tier, owner, spec.MaxReplicas, forTraining, rules); fine {
		d.Refused = append(d.Refused, trainingpod.CheckJobQoS(spec, tier)...)
		if long := trainingpod.CheckProtection(spec, tier); long != nil {
			d.Refused = append(d.Refused, long)
		}
	}
	d.Refused = append(d.Refused, trainingpod.CheckJobGrace(spec, rules.Config.Limits)...)
	d.cap(job, rules)
	d.budget(job, rules)
	d.groups(owner, by)
	d.claim(spec.Owner, &spec.Template.Spec, forTraining, by)
	return d
}

// DecideMerge judges what the schema of a merge cannot: its tier, size, resources, pool and store, by the operator's
// configuration, its schedule, and its owner, its ServiceAccount and the Secret by which its store is read, by who creates it.
func DecideMerge(spec *v1alpha1.MergeJobSpec, by Creation, rules Rules) Decision {
	var d Decision
	owner := ownership.Owner{User: spec.Owner, Groups: spec.OwnerGroups}
	if tier, fine := d.limit(spec.Tier, owner, spec.MaxReplicas, forMerge, rules); fine {
		d.Refused = append(d.Refused, trainingpod.CheckMergeQoS(spec, tier)...)
	}
	d.Refused = append(d.Refused, trainingpod.CheckMergeGrace(spec, rules.Config.Limits)...)
	d.pool(spec.Pool, rules)
	d.store(&spec.Store, rules.Config.Merges)
	if s := spec.Schedule; s != nil && s.Cron != "" {
		if _, err := schedule.Parse(s.Cron, s.TimeZone); err != nil {
			d.refuse(field.NewPath("spec", "schedule"), field.OmitValueType{}, err.Error())
		}
	}
	d.groups(owner, by)
	d.claim(spec.Owner, &spec.Template.Spec, forMerge, by)
	if name := spec.Store.CredentialsSecretName; name != "" {
		d.Claims = append(d.Claims, claimSecret(name, by))
	}
	return d
}

func (d *Decision) refuse(at *field.Path, value any, why string) {
	d.Refused = append(d.Refused, field.Invalid(at, value, why))
}

// limit holds a job to the tiers and the size that the operator's configuration and the profile know. It returns the tier; false
// for one that the job may not have.
func (d *Decision) limit(
	tier string, owner ownership.Owner, replicas int32, of words, rules Rules,
) (found config.Tier, fine bool) {
	at, cfg := field.NewPath("spec", "tier"), rules.Config
	_, known := cfg.Tiers.Find(tier)
	found, fine = cfg.Tiers.OpenTo(rules.Profile, owner).Find(tier)
	switch {
	case !known:
		d.refuse(at, tier, fmt.Sprintf(
			"is not a tier of the operator's configuration, which knows %s: name one of these", cfg.Tiers.Names()))
	case !fine:
		d.refuse(at, tier, fmt.Sprintf("is not a tier that profile %s allows, which allows %s: name one of these, or have the profile "+
			"allow it", rules.Profile.Name, cfg.Tiers.NamesOpenTo(rules.Profile, owner)))
	}
	if most := cfg.Limits.MaxWorkersPerJob; replicas > most {
		d.refuse(field.NewPath("spec", "maxReplicas"), replicas, fmt.Sprintf(
			"is more than the %d %s that the operator's configuration allows a %s (limits.maxWorkersPerJob): ask for fewer",
			most, of.pods, of.job))
	}
	return found, fine
}

// cap holds a training to what a job and a user of the profile may hold at all.
func (d *Decision) cap(job *v1alpha1.ElasticTrainingJob, rules Rules) {
	limits := admission.Of(rules.Profile)
	if !limits.Gate() || len(job.Spec.Template.Spec.Containers) == 0 {
		return
	}
	model := ""
	if a := job.Spec.Accelerator; a != nil && len(a.Models) == 1 {
		model = a.Models[0]
	}
	core := admission.MilliAmountsOf(trainingpod.CoreCounted(job, job.Spec.MinReplicas, rules.Config.Sharing))
	if limit, asked := limits.Never(core, model); limit != nil {
		d.refuse(field.NewPath("spec", "minReplicas"), job.Spec.MinReplicas, limit.TooLarge(asked, rules.Profile.Name)+
			": lower minReplicas, or have the profile allow more")
	}
}

// budget refuses a training of a user who has used up a budget that says so.
func (d *Decision) budget(job *v1alpha1.ElasticTrainingJob, rules Rules) {
	if rules.Profile == nil || len(job.Spec.Template.Spec.Containers) == 0 {
		return
	}
	core := trainingpod.CoreCounted(job, job.Spec.MinReplicas, rules.Config.Sharing)
	if rules.Config.AcceleratorsAmong(core) == 0 {
		return
	}
	if none := withoutHours(rules.Profile); none != nil {
		d.Refused = append(d.Refused, field.Forbidden(field.NewPath("spec", "owner"), fmt.Sprintf(
			"profile %s allows a user no hours of accelerators in %s: ask for no accelerators, or have the profile allow some",
			rules.Profile.Name, text.Span(none.Window.Duration))))
		return
	}
	for _, o := range rules.Profile.Status.OverBudget {
		if o.User == job.Spec.Owner && o.OnExceeded == v1alpha1.ExceededDeny {
			d.Refused = append(d.Refused, field.Forbidden(field.NewPath("spec", "owner"), fmt.Sprintf(
				"%s has used %d of the %d hours of accelerators that profile %s allows a user in %s: wait until enough of that is longer "+
					"ago, or have the profile allow more", o.User, o.UsedHours, o.MaxHours, rules.Profile.Name,
				text.Span(o.Window.Duration))))
			return
		}
	}
}

// withoutHours is a budget that refuses everybody, also who has used nothing and stands in no status; nil for none.
func withoutHours(profile *v1alpha1.ResourceQuotaProfile) *v1alpha1.HourCap {
	if profile.Spec.Caps == nil {
		return nil
	}
	for i := range profile.Spec.Caps.GPUHours {
		if h := &profile.Spec.Caps.GPUHours[i]; h.PerUser == 0 && h.OnExceeded == v1alpha1.ExceededDeny {
			return h
		}
	}
	return nil
}

// pool holds a merge to the pools that the operator's configuration and the profile know.
func (d *Decision) pool(name string, rules Rules) {
	switch at, pools := field.NewPath("spec", "pool"), rules.Config.Merges; {
	case !pools.AllowsPool(name):
		d.refuse(at, name, "is not a pool of the operator's configuration (merges.pools), which lists "+
			strings.Join(pools.Pools, ", ")+": name one of these")
	case !config.ProfileAllowsPool(rules.Profile, name):
		d.refuse(at, name, fmt.Sprintf("is not a pool that profile %s allows, which allows %s: name one of these, or have the profile "+
			"allow it", rules.Profile.Name, strings.Join(rules.Profile.Spec.Merges.Pools, ", ")))
	}
}

// store holds a store to what the operator may read.
func (d *Decision) store(s *v1alpha1.ModelStore, allowed config.Merges) {
	switch s.Provider {
	case v1alpha1.StoreFile:
		if !allowed.AllowsLocal(s.Bucket) {
			d.refuse(field.NewPath("spec", "store", "bucket"), s.Bucket, "is not in the folder where the operator's configuration allows "+
				"stores of provider file (merges.localStores, --allow-local-stores): "+localHint(allowed.LocalStores))
		}
	case v1alpha1.StoreS3:
		if allowed.AllowsEndpoint(s.Endpoint) {
			return
		}
		listed := "none"
		if len(allowed.Endpoints) > 0 {
			listed = strings.Join(allowed.Endpoints, ", ")
		}
		what := "is not an S3 server"
		if s.Endpoint == "" {
			what = "stands for AWS's own servers, which are none"
		}
		d.refuse(field.NewPath("spec", "store", "endpoint"), s.Endpoint, fmt.Sprintf("%s that the operator's configuration allows "+
			"(merges.endpoints), which lists %s: name one of these, or have whoever runs the operator add it", what, listed))
	}
}

func localHint(folder string) string {
	if folder == "" {
		return "it allows none, so use provider s3"
	}
	return "name a folder in " + folder
}

// groups refuses groups that are not those of whoever creates the job as its owner, whoever wrote them.
func (d *Decision) groups(owner ownership.Owner, by Creation) {
	foreign := func(group string) bool { return owner.User != by.User || !slices.Contains(by.Groups, group) }
	if slices.ContainsFunc(owner.Groups, foreign) {
		d.Refused = append(d.Refused, field.Forbidden(field.NewPath("spec", "ownerGroups"), "only a webhook writes it, with groups of "+
			"whoever creates the job as its owner: leave it out"))
	}
}

// claim claims for a job what takes a right of whoever creates it, whatever its kind.
func (d *Decision) claim(owner string, pod *corev1.PodSpec, of words, by Creation) {
	// A job without an owner was not seen by the mutating webhook. It is nobody's, which takes no right.
	if owner != "" && owner != by.User {
		d.Claims = append(d.Claims, claimOwner(owner, of, by))
	}
	if account, name := trainingpod.Account(pod); account != "" && account != trainingpod.DefaultAccount {
		d.Claims = append(d.Claims, claimAccount(account, name, of, by))
	}
}

func claimOwner(owner string, of words, by Creation) Claim {
	return Claim{
		Rights: []authorizationv1.ResourceAttributes{{
			Verb: assignOwner, Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version,
			Resource: of.resource, Namespace: by.Job.Namespace, Name: by.Job.Name,
		}},
		Refusal: field.Forbidden(field.NewPath("spec", "owner"), fmt.Sprintf(
			"%q is not %q, who creates the %s, and naming somebody else takes the right to %s on %s.%s in namespace "+
				"%s: leave the owner out, or have an admin bind ClusterRole tideline-assign-owner",
			owner, by.User, of.job, assignOwner, of.resource, v1alpha1.GroupVersion.Group, by.Job.Namespace)),
	}
}

// claimAccount claims a ServiceAccount: whoever may create pods may run them as any ServiceAccount of the namespace, and needs no
// right of ours for what a job does.
func claimAccount(account, name string, of words, by Creation) Claim {
	version, namespace := corev1.SchemeGroupVersion.Version, by.Job.Namespace
	return Claim{
		Rights: []authorizationv1.ResourceAttributes{
			{Verb: "create", Version: version, Resource: "pods", Namespace: namespace},
			{Verb: useAccount, Version: version, Resource: "serviceaccounts", Namespace: namespace, Name: account},
		},
		Refusal: field.Forbidden(field.NewPath("spec", "template", "spec", name), fmt.Sprintf(
			"%s that run as ServiceAccount %q take the right to create pods in namespace %s, or to %s serviceaccounts %s there, and "+
				"%q has neither: leave %s out, or have an admin give one of these rights",
			of.pods, account, namespace, useAccount, account, by.User, name)),
	}
}

// claimSecret claims the Secret by which a store is read: without it, whoever creates a merge could use, and learn from its
// status, what they may not read.
func claimSecret(name string, by Creation) Claim {
	return Claim{
		Rights: []authorizationv1.ResourceAttributes{{
			Verb: "get", Version: corev1.SchemeGroupVersion.Version, Resource: "secrets", Namespace: by.Job.Namespace, Name: name,
		}},
		Refusal: field.Forbidden(field.NewPath("spec", "store", "credentialsSecretName"), fmt.Sprintf(
			"a store that is read by Secret %q takes the right to get that Secret in namespace %s, which %q does not have: name one that "+
				"you may read, or have an admin give the right", name, by.Job.Namespace, by.User)),
	}
}
