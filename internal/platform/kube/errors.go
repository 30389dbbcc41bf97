package kube

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// Class says what to do about an error of the API server.
type Class int

const (
	// Retry with back-off: the error is transient, or nobody knows better.
	Retry Class = iota
	// Wait for something outside the object, and look again from time to time.
	Wait
	// Terminal until somebody changes the object, or an object in its way.
	Terminal
)

// Diagnosis is an error in the words of a condition.
type Diagnosis struct {
	Class Class
	// Reason is one of the reason constants of the API.
	Reason string
	// Message says what the API server did not do, its words, and what to do.
	Message string
}

// Problem is a step of a decision that could not be carried out.
type Problem struct {
	Diagnosis
	Err error
}

// ProblemOf is what an error means for whoever reconciles, nil for none; doing is as in [Diagnose].
func ProblemOf(err error, doing string) *Problem {
	if err == nil {
		return nil
	}
	return &Problem{Diagnosis: Diagnose(err, doing), Err: err}
}

// Diagnose classifies an error; doing says what was tried, for example "create pod ctr-worker-0".
func Diagnose(err error, doing string) Diagnosis {
	var taken *NameTakenError
	said := "Cannot " + doing + ": " + err.Error()
	switch {
	case errors.As(err, &taken) && taken.Predecessor:
		return Diagnosis{Wait, v1alpha1.ReasonPredecessorLeaving, said + ". It goes on when the old object is gone."}
	case errors.As(err, &taken):
		return Diagnosis{Terminal, v1alpha1.ReasonNameTaken, said +
			". It was not touched: delete or rename it, or choose another name for the job."}
	case meta.IsNoMatchError(err),
		apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource"):
		return Diagnosis{Wait, v1alpha1.ReasonVolcanoMissing, said + ". Install Volcano; the job goes on by itself then."}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "no PriorityClass with name"):
		return Diagnosis{Wait, v1alpha1.ReasonPriorityClassMissing, said +
			". Start the operator anew, which creates those of its tiers, or apply what tideline doctor prints; the job goes on by " +
			"itself then."}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return Diagnosis{Wait, v1alpha1.ReasonQuotaExceeded, said +
			". Raise the ResourceQuota, or ask for less; the job goes on by itself when there is room."}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account"):
		// A new namespace gets its account a moment later, so it is worth asking again soon.
		return Diagnosis{Retry, v1alpha1.ReasonAPIError, said + ". Create the ServiceAccount; it is tried again."}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Diagnosis{Wait, v1alpha1.ReasonAPIError, said + ". The namespace is being deleted."}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot "+verb(doing)+" resource"):
		return Diagnosis{Wait, v1alpha1.ReasonAPIError, said +
			". The operator lacks this right: apply config/rbac; the job goes on by itself then."}
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return Diagnosis{Terminal, v1alpha1.ReasonRejected, said +
			". Change what is refused, and create the job anew if it stands in the template."}
	}
	return Diagnosis{Retry, v1alpha1.ReasonAPIError, said + ". It is tried again."}
}

// verb is the first word of what was tried.
func verb(doing string) string {
	first, _, _ := strings.Cut(doing, " ")
	return first
}

// NameTakenError is returned when a name that is needed belongs to an object that is not ours.
type NameTakenError struct {
	Kind, Name string
	// Predecessor is true when the object belongs to an earlier object of the same kind and name, and will go with it.
	Predecessor bool
}

// Error says whose the name is.
func (e *NameTakenError) Error() string {
	if e.Predecessor {
		return e.Kind + " " + e.Name + " belongs to an earlier job of this name and is still being deleted"
	}
	return e.Kind + " " + e.Name + " exists and does not belong to this job"
}
