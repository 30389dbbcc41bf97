package webhook

import (
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/deviceclaim"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/platform/schedule"
	"github.com/tideline-io/tideline/internal/platform/text"
	"github.com/tideline-io/tideline/internal/quota/admission"
	"github.com/tideline-io/tideline/internal/quota/datasets"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
)

const (
	// assignOwner is the verb on jobs that lets a user name another user as the owner.
	assignOwner = "assign-owner"
	// useAccount is the verb on serviceaccounts that lets a user who may not create pods have pods run as one.
	useAccount = "use"
)

// Creation is a request to create a job.
type Creation struct {
	User string
	// Groups of the user.
	Groups []string
	// Job has no name yet if the API server will generate one.
	Job types.NamespacedName
}

// Decision is the answer to a request.
type Decision struct {
	// Refused are the fields that no user may have.
	Refused field.ErrorList
	// Claims are what only users with certain rights may have.
	Claims []Claim
}

// Claim is something that requires a right of the user who sends the request.
type Claim struct {
	// Rights are alternatives: one of them is enough. The API server is asked in this order.
	Rights []authorizationv1.ResourceAttributes
	// Refusal is the error for a user without any of them.
	Refusal *field.Error
}

// words name one kind of job in messages.
type words struct {
	// kind and resource are its names in the API, job and pods what people call it and its pods.
	kind, resource, job, pods string
}

var (
	forTraining = words{v1beta1.ElasticTrainingJobKind, "elastictrainingjobs", "job", "workers"}
	forMerge    = words{v1beta1.MergeJobKind, "mergejobs", "merge", "pods"}
)

// Rules are what a job must fulfil besides its schema.
type Rules struct {
	Config *config.Configuration
	// Profile of the job's namespace; nil for a namespace that belongs to none.
	Profile *v1beta1.ResourceQuotaProfile
	// ClaimsOf reads the resource claims of each pod; nil where nothing reads them.
	ClaimsOf func(pod *corev1.PodSpec) deviceclaim.Claims
}

// countClaims counts what a pod has by resource claims.
func (r Rules) countClaims(pod *corev1.PodSpec) deviceclaim.Counted {
	if r.ClaimsOf == nil {
		return deviceclaim.Counted{}
	}
	return r.ClaimsOf(pod).Count()
}

// DecideCreation judges what the schema of a job cannot: its tier, size and resources, by the operator's configuration and the
// profile of its namespace, and its owner and its ServiceAccount, by who creates it.
func DecideCreation(job *v1beta1.ElasticTrainingJob, by Creation, rules Rules) Decision {
	d := Decision{Refused: refuseJob(job, nil, rules)}
	d.checkSubmitter(job.Spec.Submitter, forTraining, by)
	d.claimOwner(job.Spec.Owner, forTraining, by)
	d.claimAccount(&job.Spec.Template.Spec, forTraining, by)
	return d
}

// refuseJob lists what no user may have in a job with these conditions.
func refuseJob(job *v1beta1.ElasticTrainingJob, conditions []metav1.Condition, rules Rules) field.ErrorList {
	spec := &job.Spec
	var d Decision
	owner := ownership.OwnerOf(spec.Owner, spec.Submitter, conditions)
	if tier, fine := d.limitTierAndSize(spec.Tier, owner, spec.MaxReplicas, forTraining, rules); fine {
		d.Refused = append(d.Refused, trainingpod.CheckJobQoS(spec, tier)...)
		if long := trainingpod.CheckProtection(spec, tier); long != nil {
			d.Refused = append(d.Refused, long)
		}
	}
	d.Refused = append(d.Refused, trainingpod.CheckJobGrace(spec, rules.Config.Limits)...)
	d.Refused = append(d.Refused, trainingpod.CheckJobWeight(spec)...)
	d.Refused = append(d.Refused, trainingpod.CheckDevices(&spec.Template)...)
	d.Refused = append(d.Refused, trainingpod.CheckData(spec)...)
	d.Refused = append(d.Refused, trainingpod.CheckRoles(spec)...)
	d.Refused = append(d.Refused, trainingpod.CheckModels(spec, rules.Config.Accelerators)...)
	d.checkData(job, rules)
	claimed := rules.countClaims(&spec.Template.Spec)
	if len(spec.Template.Spec.Containers) > 0 {
		core := trainingpod.CoreCounted(job, spec.MinReplicas, rules.Config.Sharing, claimed.Resources)
		model := admission.ModelOf(spec.Accelerator, &spec.Template.Spec, rules.Config.Accelerators)
		d.checkClaims(claimed, rules)
		d.checkCaps(admission.LimitsOf(rules.Profile), core, model, spec.MinReplicas, rules)
		d.checkBudgets(spec.Owner, core, rules)
	}
	return d.Refused
}

// DecideMerge judges what the schema of a merge cannot: its tier, size, resources, pool and store, by the operator's
// configuration, its schedule, and its owner, its ServiceAccount and the Secret by which its store is read, by who creates it.
func DecideMerge(spec *v1beta1.MergeJobSpec, by Creation, rules Rules) Decision {
	d := Decision{Refused: refuseMerge(spec, nil, rules)}
	d.checkSubmitter(spec.Submitter, forMerge, by)
	d.claimOwner(spec.Owner, forMerge, by)
	d.claimAccount(&spec.Template.Spec, forMerge, by)
	d.claimSecret(&spec.Store, by)
	return d
}

// refuseMerge lists what no user may have in a merge with these conditions.
func refuseMerge(spec *v1beta1.MergeJobSpec, conditions []metav1.Condition, rules Rules) field.ErrorList {
	var d Decision
	owner := ownership.OwnerOf(spec.Owner, spec.Submitter, conditions)
	if tier, fine := d.limitTierAndSize(spec.Tier, owner, spec.MaxReplicas, forMerge, rules); fine {
		d.Refused = append(d.Refused, trainingpod.CheckMergeQoS(spec, tier)...)
	}
	d.Refused = append(d.Refused, trainingpod.CheckMergeGrace(spec, rules.Config.Limits)...)
	d.Refused = append(d.Refused, trainingpod.CheckMergeWeight(spec)...)
	d.Refused = append(d.Refused, trainingpod.CheckDevices(&spec.Template)...)
	// A definition without defaults admits a merge without a number of pods, which then runs one.
	core := trainingpod.MergeCounted(spec, max(spec.MinReplicas, 1), rules.Config.Sharing)
	model := admission.ModelOf(nil, &spec.Template.Spec, rules.Config.Accelerators)
	// A merge runs in the Queue of its pool, so that the capability of the profile's own does not hold for it.
	d.checkCaps(admission.LimitsOf(rules.Profile).InOtherQueues(), core, model, spec.MinReplicas, rules)
	d.checkBudgets(spec.Owner, core, rules)
	d.checkPool(spec.Pool, rules)
	d.checkStore(&spec.Store, rules.Config.Merges)
	if s := spec.Schedule; s != nil && s.Cron != "" {
		if _, err := schedule.Parse(s.Cron, s.TimeZone); err != nil {
			d.refuse(field.NewPath("spec", "schedule"), field.OmitValueType{}, err.Error())
		}
	}
	return d.Refused
}

func (d *Decision) refuse(at *field.Path, value any, why string) {
	d.Refused = append(d.Refused, field.Invalid(at, value, why))
}

// limitTierAndSize checks tier and size against the operator's configuration and the profile. It returns the tier; false for
// a tier that the job may not use.
func (d *Decision) limitTierAndSize(
	tier string, owner ownership.Owner, replicas int32, of words, rules Rules,
) (found config.Tier, fine bool) {
	at, cfg := field.NewPath("spec", "tier"), rules.Config
	_, known := cfg.Tiers.FindTier(tier)
	found, fine = cfg.Tiers.OpenTo(rules.Profile, owner).FindTier(tier)
	switch {
	case !known:
		d.refuse(at, tier, fmt.Sprintf(
			"is not a tier of the operator's configuration, which has %s: use one of these", cfg.Tiers.JoinedNames()))
	case !fine:
		d.refuse(at, tier, fmt.Sprintf("profile %s does not allow this tier; it allows %s: use one of these, or ask an "+
			"administrator to allow it", rules.Profile.Name, cfg.Tiers.NamesOpenTo(rules.Profile, owner)))
	}
	if most := cfg.Limits.MaxWorkersPerJob; replicas > most {
		d.refuse(field.NewPath("spec", "maxReplicas"), replicas, fmt.Sprintf(
			"is more than the %d %s that the operator's configuration allows for a %s (limits.maxWorkersPerJob): use fewer",
			most, of.pods, of.job))
	}
	return found, fine
}

// checkClaims refuses a training whose devices cannot be counted where its profile limits what jobs hold: it could never start.
// Claims that do not exist yet may come, and the planner counts them then.
func (d *Decision) checkClaims(claimed deviceclaim.Counted, rules Rules) {
	if len(claimed.Unknown) > 0 && admission.LimitsOf(rules.Profile).HasLimits() {
		d.Refused = append(d.Refused, field.Forbidden(field.NewPath("spec", "template", "spec", "resourceClaims"), fmt.Sprintf(
			"profile %s limits what jobs hold, and how many accelerators a worker claims is unknown: %s: claim a number of devices of a "+
				"listed class, or ask an administrator to list the class", rules.Profile.Name, claimed.DescribeUnknown())))
	}
}

// checkData refuses data that neither the profile has nor the attempt that the job goes on with.
func (d *Decision) checkData(job *v1beta1.ElasticTrainingJob, rules Rules) {
	var had []v1beta1.DataPlace
	if a := job.Status.Attempt; a != nil {
		had = a.DataSets
	}
	_, missing := datasets.Places(job.Spec.DataSets, had, rules.Profile)
	mend := ": use one of these, or ask for it to be added to the profile"
	if rules.Profile == nil {
		mend = ": mount the claim by spec.template, or ask for the namespace to be added to a profile"
	}
	for _, m := range missing {
		asked := map[string]string{"name": job.Spec.DataSets[m.At].Name, "version": job.Spec.DataSets[m.At].Version}
		d.refuse(field.NewPath("spec", "dataSets").Index(m.At).Child(m.Field), asked[m.Field], m.Why+mend)
	}
}

// checkCaps refuses a gang that exceeds a cap of the profile by itself: it could never start.
func (d *Decision) checkCaps(limits admission.Limits, core corev1.ResourceList, model string, pods int32, rules Rules) {
	if limit, asked := limits.NeverFits(admission.HeldBy(core, pods), model); limit != nil {
		d.refuse(field.NewPath("spec", "minReplicas"), pods, limit.TooLarge(asked, rules.Profile.Name)+
			": lower minReplicas, or ask an administrator to raise the limit")
	}
}

// checkBudgets refuses accelerators to a user who has used up a budget with onExceeded: Deny.
func (d *Decision) checkBudgets(user string, core corev1.ResourceList, rules Rules) {
	if rules.Config.AcceleratorsAmong(core) == 0 {
		return
	}
	switch o := admission.BudgetUsedUp(rules.Profile, user, v1beta1.ExceededDeny); {
	case o == nil:
	case o.User == "":
		d.Refused = append(d.Refused, field.Forbidden(field.NewPath("spec", "owner"), fmt.Sprintf(
			"profile %s gives users no accelerator hours in %s: remove the accelerators, or ask an administrator for hours",
			rules.Profile.Name, text.FormatDuration(o.Window.Duration))))
	default:
		d.Refused = append(d.Refused, field.Forbidden(field.NewPath("spec", "owner"), fmt.Sprintf(
			"%s has used %d of %d accelerator hours in %[5]s (profile %[4]s): wait until enough of them are older than %[5]s, or ask an "+
				"administrator for more", o.User, o.UsedHours, o.MaxHours, rules.Profile.Name, text.FormatDuration(o.Window.Duration))))
	}
}

// checkPool checks the pool against the operator's configuration and the profile.
func (d *Decision) checkPool(name string, rules Rules) {
	switch at, pools := field.NewPath("spec", "pool"), rules.Config.Merges; {
	case !pools.AllowsPool(name):
		d.refuse(at, name, "is not a pool of the operator's configuration (merges.pools), which has "+
			strings.Join(pools.Pools, ", ")+": use one of these")
	case !config.ProfileAllowsPool(rules.Profile, name):
		d.refuse(at, name, fmt.Sprintf("profile %s does not allow this pool; it allows %s: use one of these, or ask an "+
			"administrator to allow it", rules.Profile.Name, strings.Join(rules.Profile.Spec.Merges.Pools, ", ")))
	}
}

// checkStore refuses a store that the operator's configuration does not allow.
func (d *Decision) checkStore(s *v1beta1.ModelStore, allowed config.Merges) {
	switch s.Type {
	case v1beta1.StoreClaim: // The API server allows a claim of the job's own namespace only.
	case v1beta1.StoreFile:
		if !allowed.AllowsLocal(s.Place()) {
			at := field.NewPath("spec", "store", "file", "path")
			d.refuse(at, s.Place(), "is outside the folder that the operator's configuration allows for stores "+
				"of type File (merges.localStores, --allow-local-stores): "+localHint(allowed.LocalStores))
		}
	case v1beta1.StoreS3:
		endpoint, _ := s.Server()
		if allowed.AllowsEndpoint(endpoint) {
			return
		}
		listed := "none"
		if len(allowed.Endpoints) > 0 {
			listed = strings.Join(allowed.Endpoints, ", ")
		}
		what := "is not a server"
		if endpoint == "" {
			what = "an empty endpoint means AWS, which is not a server"
		}
		d.refuse(field.NewPath("spec", "store", "s3", "endpoint"), endpoint, fmt.Sprintf("%s that the operator's configuration allows "+
			"(merges.endpoints); it allows %s: use one of these, or ask an administrator to add it", what, listed))
	}
}

func localHint(folder string) string {
	if folder == "" {
		return "it allows none, so use type S3"
	}
	return "use a folder in " + folder
}

// checkSubmitter refuses groups that the submitter does not have, and another submitter than the user who sends the request,
// unless that user may name other owners too, as one who restores a backup.
func (d *Decision) checkSubmitter(named *v1beta1.Submitter, of words, by Creation) {
	at := field.NewPath("spec", "submitter")
	switch {
	case named == nil:
	case named.Username != by.User:
		d.Claims = append(d.Claims, Claim{
			Rights: rightsToAssign(of, by),
			Refusal: field.Forbidden(at.Child("username"), fmt.Sprintf(
				"%q is not %q, who creates the %s. To restore a %[3]s with its submitter, a user needs the verb %s on %s.%s in namespace "+
					"%s: leave the submitter out, or ask an administrator to bind ClusterRole tideline-assign-owner",
				named.Username, by.User, of.job, assignOwner, of.resource, v1beta1.GroupVersion.Group, by.Job.Namespace)),
		})
	case slices.ContainsFunc(named.Groups, func(group string) bool { return !slices.Contains(by.Groups, group) }):
		d.Refused = append(d.Refused, field.Forbidden(at.Child("groups"), "only the webhook writes this field, with "+
			"groups of the user who creates the job: leave it out"))
	}
}

// claimOwner requires the right to name another owner of a job that is being created.
func (d *Decision) claimOwner(owner string, of words, by Creation) {
	// A job without an owner was not seen by the mutating webhook. It requires no right, because it acts for no user.
	if owner != "" && owner != by.User {
		d.Claims = append(d.Claims, Claim{
			Rights: rightsToAssign(of, by),
			Refusal: field.Forbidden(field.NewPath("spec", "owner"), fmt.Sprintf(
				"%q is not %q, who creates the %s. To name another owner, a user needs the verb %s on %s.%s in namespace "+
					"%s: leave the owner out, or ask an administrator to bind ClusterRole tideline-assign-owner",
				owner, by.User, of.job, assignOwner, of.resource, v1beta1.GroupVersion.Group, by.Job.Namespace)),
		})
	}
}

func rightsToAssign(of words, by Creation) []authorizationv1.ResourceAttributes {
	return []authorizationv1.ResourceAttributes{{
		Verb: assignOwner, Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version,
		Resource: of.resource, Namespace: by.Job.Namespace, Name: by.Job.Name,
	}}
}

// claimAccount requires the right to use a ServiceAccount. A user who may create pods can run them as any ServiceAccount of the
// namespace anyway, and needs no other right for a job.
func (d *Decision) claimAccount(pod *corev1.PodSpec, of words, by Creation) {
	account, name := trainingpod.ServiceAccountOf(pod)
	if account == "" || account == trainingpod.DefaultAccount {
		return
	}
	version, namespace := corev1.SchemeGroupVersion.Version, by.Job.Namespace
	d.Claims = append(d.Claims, Claim{
		Rights: []authorizationv1.ResourceAttributes{
			{Verb: "create", Version: version, Resource: "pods", Namespace: namespace},
			{Verb: useAccount, Version: version, Resource: "serviceaccounts", Namespace: namespace, Name: account},
		},
		Refusal: field.Forbidden(field.NewPath("spec", "template", "spec", name), fmt.Sprintf(
			"to run %s as ServiceAccount %q, a user needs the right to create pods in namespace %s, or to %s serviceaccounts %s there. "+
				"%q has neither: leave %s out, or ask an administrator for one of these rights",
			of.pods, account, namespace, useAccount, account, by.User, name)),
	})
}

// claimSecret requires the right to read the Secret with the credentials of a store. Otherwise a user could have the operator
// read a store that the user may not read, and learn about it from the status.
func (d *Decision) claimSecret(store *v1beta1.ModelStore, by Creation) {
	name := store.CredentialsSecret()
	if name == "" {
		return
	}
	d.Claims = append(d.Claims, Claim{
		Rights: []authorizationv1.ResourceAttributes{{
			Verb: "get", Version: corev1.SchemeGroupVersion.Version, Resource: "secrets", Namespace: by.Job.Namespace, Name: name,
		}},
		Refusal: field.Forbidden(field.NewPath("spec", "store", "s3", "credentialsRef", "name"), fmt.Sprintf(
			"to use Secret %q, a user needs the right to get it in namespace %s, which %q does not have: name a Secret that you "+
				"may read, or ask an administrator for the right", name, by.Job.Namespace, by.User)),
	})
}
