package elastictrainingjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// jobsWithData is an index of the jobs that name data sets, all under one value: claims come by the thousand, and few jobs wait
// for one.
const jobsWithData, anyData = "tideline.io/jobs-with-data", "any"

func indexData(o client.Object) []string {
	if job, ok := o.(*v1beta1.ElasticTrainingJob); ok && len(job.Spec.DataSets) > 0 {
		return []string{anyData}
	}
	return nil
}

// lackingClaims are those that do not exist, or are being deleted, of the claims with data that the job names.
func lackingClaims(ctx context.Context, reader client.Reader, o *jobstate.Observed) ([]string, error) {
	places, _ := o.DataPlaces()
	var lacking []string
	for _, place := range places {
		if place.Claim == "" {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		key := client.ObjectKey{Namespace: o.Job.Namespace, Name: place.Claim}
		switch err := reader.Get(ctx, key, claim, client.UnsafeDisableDeepCopy); {
		case apierrors.IsNotFound(err):
			lacking = append(lacking, place.Claim)
		case err != nil:
			return nil, fmt.Errorf("read PersistentVolumeClaim %s: %w", place.Claim, err)
		case claim.DeletionTimestamp != nil: // It goes with the last pod that uses it, and no scheduler places another.
			lacking = append(lacking, place.Claim)
		}
	}
	return lacking, nil
}

// besideClaim wakes the jobs of a claim's namespace that name data sets.
func besideClaim(requestsFor func(context.Context, ...client.ListOption) []reconcile.Request) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, claim client.Object) []reconcile.Request {
		return requestsFor(ctx, client.InNamespace(claim.GetNamespace()), client.MatchingFields{jobsWithData: anyData})
	})
}

// comesOrGoes passes no change of an object but that it is being deleted.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
	}}
}
