package kube

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Class says what to do about an error of the API server.
type Class int

const (
	// Retry with back-off: the error is transient or unknown.
	Retry Class = iota
	// Wait for something outside the object, and try again every half minute.
	Wait
	// Terminal until a person changes the object, or an object in its way.
	Terminal
)

// Diagnosis is an error as a condition reports it.
type Diagnosis struct {
	Class Class
	// Reason is one of the reason constants of the API.
	Reason string
	// Message says what could not be done, the API server's own words, and what to do.
	Message string
}

// Problem is an error that kept a step of a decision from being carried out.
type Problem struct {
	Diagnosis
	Err error
}

// ProblemOf is the Problem of an error, nil for nil; doing is as in [DiagnoseError].
func ProblemOf(err error, doing string) *Problem {
	if err == nil {
		return nil
	}
	return &Problem{Diagnosis: DiagnoseError(err, doing), Err: err}
}

// IsNotServed holds for what an API server answers about a kind that it does not serve, which is a "not found" of no object.
func IsNotServed(err error) bool {
	return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "could not find the requested resource")
}

// DiagnoseError classifies an error; doing says what was tried, for example "create pod ctr-worker-0".
func DiagnoseError(err error, doing string) Diagnosis {
	var taken *NameTakenError
	said := "Cannot " + doing + ": " + err.Error()
	switch {
	case errors.As(err, &taken) && (taken.Predecessor || taken.Leaving):
		return Diagnosis{Wait, v1beta1.ReasonPredecessorLeaving, said + ". It continues once the old object is gone."}
	case errors.As(err, &taken):
		return Diagnosis{Terminal, v1beta1.ReasonNameTaken, said +
			". The operator has not touched it: delete or rename it, or choose another name for the job."}
	case meta.IsNoMatchError(err), IsNotServed(err):
		return Diagnosis{Wait, v1beta1.ReasonVolcanoMissing, said + ". Install Volcano; the job then continues by itself."}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "no PriorityClass with name"):
		return Diagnosis{Wait, v1beta1.ReasonPriorityClassMissing, said +
			". Restart the operator, which creates the PriorityClasses of its tiers, or apply what `tideline doctor` prints; the job " +
			"then continues by itself."}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return Diagnosis{Wait, v1beta1.ReasonQuotaExceeded, said +
			". Raise the ResourceQuota or ask for less; the job continues by itself once the quota has room."}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account"):
		// A new namespace gets its account a moment later, so it is worth trying again soon.
		return Diagnosis{Retry, v1beta1.ReasonAPIError, said + ". Create the ServiceAccount; the operator tries again."}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Diagnosis{Wait, v1beta1.ReasonAPIError, said + ". The namespace is being deleted."}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot "+firstWord(doing)+" resource"):
		return Diagnosis{Wait, v1beta1.ReasonAPIError, said +
			". The operator lacks this right: apply config/rbac; the job then continues by itself."}
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "must be set for non overcommitable resources"):
		// Kubernetes' words for a GPU that the template names under requests alone.
		return Diagnosis{Terminal, v1beta1.ReasonRejected, said +
			". GPUs and other extended resources must stand under limits: move them there in the template, delete the job and create " +
			"it again."}
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return Diagnosis{Terminal, v1beta1.ReasonRejected, said +
			". Correct what it refuses; if that is in the template, delete the job and create it again."}
	}
	return Diagnosis{Retry, v1beta1.ReasonAPIError, said + ". The operator tries again."}
}

// firstWord is the verb of what was tried.
func firstWord(doing string) string {
	first, _, _ := strings.Cut(doing, " ")
	return first
}

// NameTakenError says that a name that the operator needs belongs to another object.
type NameTakenError struct {
	Kind, Name string
	// Predecessor is true if that object belongs to an earlier object of the same kind and name, and will be deleted with it.
	// Leaving is true if it belongs to the same owner and is being deleted, which a finalizer may delay.
	Predecessor, Leaving bool
}

// Error implements error.
func (e *NameTakenError) Error() string {
	switch {
	case e.Leaving:
		return e.Kind + " " + e.Name + " is still being deleted"
	case e.Predecessor:
		return e.Kind + " " + e.Name + " belongs to an earlier job of this name and is still being deleted"
	}
	return e.Kind + " " + e.Name + " exists and does not belong to this job"
}
