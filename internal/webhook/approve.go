package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/quota/approval"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
)

const (
	// approve is the verb on resourcequotaprofiles that lets a user approve jobs of the profile's namespaces.
	approve = "approve"
	// approvalSkew is how far apart the clocks of two replicas may be, one of which records an approval that the other checks.
	approvalSkew = time.Minute
)

// Approvable is what approvals read of a job, of whatever kind.
type Approvable struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Tier        string   `json:"tier"`
		Owner       string   `json:"owner"`
		OwnerGroups []string `json:"ownerGroups"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (a *Approvable) owner() ownership.Owner {
	return ownership.Of(a.Spec.Owner, a.Spec.OwnerGroups, a.Status.Conditions)
}

// annotation is the path of an annotation, for messages.
func annotation(key string) *field.Path { return field.NewPath("metadata", "annotations").Key(key) }

// pathOf is the path of an annotation, for patches (RFC 6901).
func pathOf(key string) string { return "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1") }

// early refuses approval of a job that is not there yet.
func (d *Decision) early(annotations map[string]string) {
	if _, asked := annotations[v1alpha1.AnnotationApprove]; asked {
		d.Refused = append(d.Refused, field.Forbidden(annotation(v1alpha1.AnnotationApprove), "an approval is of one object, and this "+
			"is not created yet: leave it out, and have it approved once it exists"))
	}
}

// tier is the one that an approval of the job is for. It is an error to approve what takes no approval.
func (r Rules) tier(job *Approvable) (string, *field.Error) {
	at := annotation(v1alpha1.AnnotationApprove)
	if r.Profile == nil {
		return "", field.Forbidden(at, fmt.Sprintf("namespace %s belongs to no ResourceQuotaProfile, so that no job of it takes "+
			"approval: leave it out", job.Namespace))
	}
	tier, ok := r.Config.Tiers.OpenTo(r.Profile, job.owner()).Find(job.Spec.Tier)
	switch {
	case !ok:
		return "", field.Forbidden(at, fmt.Sprintf("its tier, %q, is none that profile %s allows, which allows %s: have the profile "+
			"allow it first", job.Spec.Tier, r.Profile.Name, r.Config.Tiers.NamesOpenTo(r.Profile, job.owner())))
	case !config.RequiresApproval(r.Profile, tier.Name):
		return "", field.Forbidden(at, fmt.Sprintf("tier %s takes no approval by profile %s: leave it out", tier.Name, r.Profile.Name))
	}
	return tier.Name, nil
}

// Record is the approval that a user asks to have recorded of a job by the value of annotation approve.
func (r Rules) Record(job *Approvable, user string, now time.Time) (approval.Approval, *field.Error) {
	asked := job.Annotations[v1alpha1.AnnotationApprove]
	counts, err := approval.ParseDuration(asked)
	if err != nil {
		return approval.Approval{}, field.Invalid(annotation(v1alpha1.AnnotationApprove), asked, err.Error())
	}
	tier, refusal := r.tier(job)
	if refusal != nil {
		return approval.Approval{}, refusal
	}
	now = now.UTC().Truncate(time.Second)
	return approval.Approval{
		By: user, UID: job.UID, Profile: r.Profile.Name, Tier: tier, At: metav1.NewTime(now), Until: metav1.NewTime(now.Add(counts)),
	}, nil
}

// CheckApproval judges a change of a job by a user, as far as approvals go: a record may be one only that Record makes for that
// user, and to write or remove one takes the right to approve. In a namespace without a profile no record counts, and anybody may
// remove it.
func (r Rules) CheckApproval(before, job *Approvable, user string, now time.Time) Decision {
	var d Decision
	was, had := before.Annotations[v1alpha1.AnnotationApproval]
	is, has := job.Annotations[v1alpha1.AnnotationApproval]
	switch {
	case was == is && had == has:
		return d
	case has && !r.genuine(is, job, user, now):
		d.Refused = append(d.Refused, field.Forbidden(annotation(v1alpha1.AnnotationApproval), fmt.Sprintf("only the webhook writes "+
			"it: leave it out, and write %s: 72h to approve", v1alpha1.AnnotationApprove)))
	case r.Profile != nil:
		d.Claims = append(d.Claims, claimApproval(r.Profile.Name, user, !has))
	}
	return d
}

// genuine tells whether a record is one that was made for the user just now.
func (r Rules) genuine(record string, job *Approvable, user string, now time.Time) bool {
	a, err := approval.Parse(record)
	if err != nil {
		return false
	}
	asked := &Approvable{Spec: job.Spec, Status: job.Status}
	asked.UID, asked.Annotations = job.UID, map[string]string{v1alpha1.AnnotationApprove: a.Until.Sub(a.At.Time).String()}
	same, refusal := r.Record(asked, user, a.At.Time)
	return refusal == nil && same.String() == record && now.Sub(a.At.Time).Abs() <= approvalSkew
}

// claimApproval claims the right to approve. Whoever replaces a job by a file that does not have the record takes it back without
// meaning to, and is told how not to.
func claimApproval(profile, user string, takenBack bool) Claim {
	keep := ""
	if takenBack {
		keep = "; to change something else, keep the annotation as it is, or use kubectl apply or kubectl patch, which do"
	}
	return Claim{
		Rights: []authorizationv1.ResourceAttributes{{
			Verb: approve, Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version,
			Resource: "resourcequotaprofiles", Name: profile,
		}},
		Refusal: field.Forbidden(annotation(v1alpha1.AnnotationApproval), fmt.Sprintf("to approve a job, or to take an approval back, "+
			"takes the right to %s resourcequotaprofiles.%s %s, which %q does not have: ask somebody who has it, or have a cluster admin "+
			"bind ClusterRole tideline-approve%s", approve, v1alpha1.GroupVersion.Group, profile, user, keep)),
	}
}

// approver records approvals and checks what is recorded. The API server calls it for changes of approvals alone; where OLM
// installs webhooks, which cannot say so, for every change of a job, and it looks for itself.
type approver struct {
	client client.Client
	config *config.Configuration
	now    func() time.Time
}

// record writes who approves, in place of what they asked.
func (a *approver) record(ctx context.Context, req admission.Request) admission.Response {
	before, job, response := changeOf(req)
	if response != nil {
		return *response
	}
	was, had := before.Annotations[v1alpha1.AnnotationApprove]
	is, has := job.Annotations[v1alpha1.AnnotationApprove]
	if !has || (had && was == is) {
		return admission.Allowed("")
	}
	rules, err := a.rules(ctx, req.Namespace)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	record, refusal := rules.Record(job, req.UserInfo.Username, a.now())
	if refusal != nil {
		d := Decision{Refused: field.ErrorList{refusal}}
		return d.answer(ctx, a.client, req, req.Kind.Kind, "")
	}
	return admission.Patched("",
		jsonpatch.NewOperation("remove", pathOf(v1alpha1.AnnotationApprove), nil),
		jsonpatch.NewOperation("add", pathOf(v1alpha1.AnnotationApproval), record.String()))
}

// check refuses records that nobody may write, or that this user may not.
func (a *approver) check(ctx context.Context, req admission.Request) admission.Response {
	before, job, response := changeOf(req)
	if response != nil {
		return *response
	}
	if before.Annotations[v1alpha1.AnnotationApproval] == job.Annotations[v1alpha1.AnnotationApproval] {
		return admission.Allowed("")
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	rules, err := a.rules(ctx, req.Namespace)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	d := rules.CheckApproval(before, job, req.UserInfo.Username, a.now())
	return d.answer(ctx, a.client, req, req.Kind.Kind, "approve it again")
}

// rules are those of the jobs of a namespace.
func (a *approver) rules(ctx context.Context, namespace string) (Rules, error) {
	_, of, err := profilecache.ProfileOf(ctx, a.client, namespace)
	return Rules{a.config, of}, err
}

// changeOf reads a job as it was and as it is to be; the response is nil if it can be read.
func changeOf(req admission.Request) (before, job *Approvable, response *admission.Response) {
	before, job = &Approvable{}, &Approvable{}
	for from, to := range map[*[]byte]*Approvable{&req.OldObject.Raw: before, &req.Object.Raw: job} {
		if err := json.Unmarshal(*from, to); err != nil {
			wrong := admission.Errored(http.StatusBadRequest, fmt.Errorf("read the job: %w", err))
			return nil, nil, &wrong
		}
	}
	return before, job, nil
}
