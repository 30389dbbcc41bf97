// Package approval judges whether a job has a valid approval to run in its tier.
package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// Shortest and Longest bound how long an approval counts.
const (
	Shortest = time.Minute
	Longest  = 365 * 24 * time.Hour
)

// Approval is the record that a user approved a job to run in a tier. It counts for that job, profile and tier alone.
type Approval struct {
	// By is the user, as the API server names them.
	By string `json:"by"`
	// UID is that of the job: another of the same name needs an approval of its own.
	UID types.UID `json:"uid"`
	// Profile is the profile that gave the right to approve, and Tier the tier that was approved.
	Profile string `json:"profile"`
	Tier    string `json:"tier"`
	// At is when it was given, and Until when it expires, in whole seconds.
	At    metav1.Time `json:"at"`
	Until metav1.Time `json:"until"`
}

// ParseDuration reads how long an approval is to count. Its error says what to write.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if d = d.Truncate(time.Second); err != nil || d < Shortest || d > Longest {
		return 0, fmt.Errorf("is not a duration from %s to %.0fh: write how long the approval counts, for example 72h or 30m",
			"1m", Longest.Hours())
	}
	return d, nil
}

// Parse reads a record as String writes it, and refuses fields that it does not know.
func Parse(value string) (Approval, error) {
	var a Approval
	decoder := json.NewDecoder(bytes.NewReader([]byte(value)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		return Approval{}, fmt.Errorf("read the approval: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Approval{}, errors.New("read the approval: unexpected text after it")
	}
	return a, nil
}

// String is the value of the annotation: compact JSON.
func (a Approval) String() string {
	content, err := json.Marshal(a)
	if err != nil {
		return "" // Texts and times always have a JSON.
	}
	return string(content)
}

// IsValidFor tells whether the approval holds for a job, in a tier of a profile, at a time; if not, it says why.
func (a Approval) IsValidFor(job types.UID, profile, tier string, now time.Time) (bool, string) {
	switch {
	case a.UID != job:
		return false, "is for an earlier object of this name"
	case a.Profile != profile:
		return false, "is for profile " + a.Profile
	case a.Tier != tier:
		return false, "is for tier " + a.Tier
	case !now.Before(a.Until.Time):
		return false, "expired at " + a.Until.UTC().Format(time.RFC3339)
	}
	return true, ""
}

// Question is whether a job that has not begun may begin, as far as approval goes.
type Question struct {
	Job metav1.Object
	// Resource is the short name of the job's kind, by which kubectl knows it.
	Resource string
	// Tier is the one that the job would begin in.
	Tier string
	// Profile of the job's namespace; nil for a namespace that belongs to none.
	Profile *v1beta1.ResourceQuotaProfile
	// WebhooksOff is true if the operator runs without webhooks. Then anyone can write an approval, and none counts.
	WebhooksOff bool
}

// AnswerAt is why the job waits and what to do; empty for a job that may begin. until is when its approval expires; zero for a
// job that needs none.
func (q Question) AnswerAt(now time.Time) (waits string, until time.Time) {
	if !config.RequiresApproval(q.Profile, q.Tier) {
		return "", time.Time{}
	}
	if q.WebhooksOff {
		return fmt.Sprintf("Profile %[2]s requires approval for tier %[1]s. Approval needs the webhooks, and this operator runs "+
			"without them (--webhooks=false). Ask an administrator to switch them on, or set spec.tier to another tier.", q.Tier,
			q.Profile.Name), time.Time{}
	}
	namespace, name := q.Job.GetNamespace(), q.Job.GetName()
	waits = fmt.Sprintf("Tier %s requires approval. A user with the right to approve on profile %s (ClusterRole tideline-approve) "+
		"runs: tideline approve %s/%s --for 72h, or kubectl annotate %s %s -n %s %s=72h.", q.Tier, q.Profile.Name, namespace, name,
		q.Resource, name, namespace, v1beta1.AnnotationApprove)
	value, given := q.Job.GetAnnotations()[v1beta1.AnnotationApproval]
	if !given {
		return waits, time.Time{}
	}
	a, err := Parse(value)
	if err != nil {
		return fmt.Sprintf("%s The webhook did not write the present annotation %s, so Tideline ignores it.", waits,
			v1beta1.AnnotationApproval), time.Time{}
	}
	if counts, why := a.IsValidFor(q.Job.GetUID(), q.Profile.Name, q.Tier, now); !counts {
		return fmt.Sprintf("%s The present approval by %s does not count: it %s.", waits, a.By, why), time.Time{}
	}
	return "", a.Until.Time
}
