package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/ownership"
	"github.com/tideline-io/tideline/internal/quota/approval"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
)

const (
	// approve is the verb on resourcequotaprofiles that lets a user approve jobs of the profile's namespaces.
	approve = "approve"
	// approvalSkew is how far apart the clocks of two replicas may be. One may record an approval and the other check it.
	approvalSkew = time.Minute
)

// Approvable is the part of a job of any kind that approvals read.
type Approvable struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Tier      string             `json:"tier"`
		Owner     string             `json:"owner"`
		Submitter *v1beta1.Submitter `json:"submitter"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (a *Approvable) owner() ownership.Owner {
	return ownership.OwnerOf(a.Spec.Owner, a.Spec.Submitter, a.Status.Conditions)
}

// annotationPath is the path of an annotation, for messages.
func annotationPath(key string) *field.Path { return field.NewPath("metadata", "annotations").Key(key) }

// pathOf is the path of an annotation, for patches (RFC 6901).
func pathOf(key string) string { return "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1") }

// refuseEarlyApproval refuses approval of a job that is being created: an approval names the UID, which does not exist yet.
func (d *Decision) refuseEarlyApproval(annotations map[string]string) {
	if _, asked := annotations[v1beta1.AnnotationApprove]; asked {
		d.Refused = append(d.Refused, field.Forbidden(annotationPath(v1beta1.AnnotationApprove), "a job can be approved "+
			"only after it was created: leave it out, and approve the job then"))
	}
}

// approvableTier is the tier that an approval of the job is for. To approve a tier that requires no approval is an error.
func (r Rules) approvableTier(job *Approvable) (string, *field.Error) {
	at := annotationPath(v1beta1.AnnotationApprove)
	if r.Profile == nil {
		return "", field.Forbidden(at, fmt.Sprintf("namespace %s belongs to no ResourceQuotaProfile, so its jobs require no "+
			"approval: leave it out", job.Namespace))
	}
	tier, ok := r.Config.Tiers.OpenTo(r.Profile, job.owner()).FindTier(job.Spec.Tier)
	switch {
	case !ok:
		return "", field.Forbidden(at, fmt.Sprintf("profile %[2]s does not allow tier %[1]q of the job; it allows %[3]s: ask an "+
			"administrator to allow it first", job.Spec.Tier, r.Profile.Name, r.Config.Tiers.NamesOpenTo(r.Profile, job.owner())))
	case !config.RequiresApproval(r.Profile, tier.Name):
		return "", field.Forbidden(at, fmt.Sprintf("tier %s requires no approval in profile %s: leave it out", tier.Name,
			r.Profile.Name))
	}
	return tier.Name, nil
}

// RecordApproval makes the record of an approval that a user gives by the value of annotation approve.
func (r Rules) RecordApproval(job *Approvable, user string, now time.Time) (approval.Approval, *field.Error) {
	asked := job.Annotations[v1beta1.AnnotationApprove]
	counts, err := approval.ParseDuration(asked)
	if err != nil {
		return approval.Approval{}, field.Invalid(annotationPath(v1beta1.AnnotationApprove), asked, err.Error())
	}
	tier, refusal := r.approvableTier(job)
	if refusal != nil {
		return approval.Approval{}, refusal
	}
	now = now.UTC().Truncate(time.Second)
	return approval.Approval{
		By: user, UID: job.UID, Profile: r.Profile.Name, Tier: tier, At: metav1.NewTime(now), Until: metav1.NewTime(now.Add(counts)),
	}, nil
}

// CheckApproval judges a change of a job's approval by a user. The record must be the one that RecordApproval makes for that
// user, and to write or remove it requires the right to approve. In a namespace without a profile records do not count, and
// every user may remove them.
func (r Rules) CheckApproval(before, job *Approvable, user string, now time.Time) Decision {
	var d Decision
	was, had := before.Annotations[v1beta1.AnnotationApproval]
	is, has := job.Annotations[v1beta1.AnnotationApproval]
	switch {
	case was == is && had == has:
		return d
	case has && !r.isGenuine(is, job, user, now):
		d.Refused = append(d.Refused, field.Forbidden(annotationPath(v1beta1.AnnotationApproval), fmt.Sprintf("only the "+
			"webhook writes it: leave it out, and set annotation %s: 72h to approve", v1beta1.AnnotationApprove)))
	case r.Profile != nil:
		d.Claims = append(d.Claims, claimApproval(r.Profile.Name, user, !has))
	}
	return d
}

// isGenuine tells whether the mutating webhook made the record for this user just now. It makes the record again and compares.
func (r Rules) isGenuine(record string, job *Approvable, user string, now time.Time) bool {
	a, err := approval.Parse(record)
	if err != nil {
		return false
	}
	asked := &Approvable{Spec: job.Spec, Status: job.Status}
	asked.UID, asked.Annotations = job.UID, map[string]string{v1beta1.AnnotationApprove: a.Until.Sub(a.At.Time).String()}
	same, refusal := r.RecordApproval(asked, user, a.At.Time)
	return refusal == nil && same.String() == record && now.Sub(a.At.Time).Abs() <= approvalSkew
}

// claimApproval requires the right to approve. A user who replaces a job by a file without the record removes it without
// meaning to. The message tells how to keep it.
func claimApproval(profile, user string, takenBack bool) Claim {
	keep := ""
	if takenBack {
		keep = "; to change something else, keep the annotation, or use kubectl apply or kubectl patch, which keep it"
	}
	return Claim{
		Rights: rightsToApprove(profile),
		Refusal: field.Forbidden(annotationPath(v1beta1.AnnotationApproval), fmt.Sprintf("to approve a job, or to remove an "+
			"approval, a user needs the right to %s resourcequotaprofiles.%s %s, which %q does not have: ask a user who has it, or "+
			"ask an "+
			"administrator to bind ClusterRole tideline-approve%s", approve, v1beta1.GroupVersion.Group, profile, user, keep)),
	}
}

// approver records approvals and checks the records. The API server calls it only for changes of approvals. Webhooks that OLM
// installs cannot have such a condition, so they are called for every change of a job, and approver looks for itself.
type approver struct {
	client client.Client
	config *config.Configuration
	now    func() time.Time
}

// recordApprover replaces annotation approve by the record of who approved.
func (a *approver) recordApprover(ctx context.Context, req admission.Request) admission.Response {
	before, job, response := changeOf(req)
	if response != nil {
		return *response
	}
	was, had := before.Annotations[v1beta1.AnnotationApprove]
	is, has := job.Annotations[v1beta1.AnnotationApprove]
	if !has || (had && was == is) {
		return admission.Allowed("")
	}
	rules, err := a.rulesFor(ctx, req.Namespace)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	record, refusal := rules.RecordApproval(job, req.UserInfo.Username, a.now())
	if refusal != nil {
		d := Decision{Refused: field.ErrorList{refusal}}
		return d.answerRequest(ctx, a.client, req, req.Kind.Kind, "")
	}
	return admission.Patched("",
		jsonpatch.NewOperation("remove", pathOf(v1beta1.AnnotationApprove), nil),
		jsonpatch.NewOperation("add", pathOf(v1beta1.AnnotationApproval), record.String()))
}

// checkRecords refuses a record that the webhook did not write, or whose user may not approve.
func (a *approver) checkRecords(ctx context.Context, req admission.Request) admission.Response {
	before, job, response := changeOf(req)
	if response != nil {
		return *response
	}
	if before.Annotations[v1beta1.AnnotationApproval] == job.Annotations[v1beta1.AnnotationApproval] {
		return admission.Allowed("")
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	rules, err := a.rulesFor(ctx, req.Namespace)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	d := rules.CheckApproval(before, job, req.UserInfo.Username, a.now())
	return d.answerRequest(ctx, a.client, req, req.Kind.Kind, "approve it again")
}

// rulesFor are the rules of the jobs of a namespace.
func (a *approver) rulesFor(ctx context.Context, namespace string) (Rules, error) {
	_, of, err := profilecache.ProfileOf(ctx, a.client, namespace)
	return Rules{Config: a.config, Profile: of}, err
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
