package resourcequotaprofile

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/quota"
	"github.com/tideline-io/tideline/internal/quota/datasets"
)

// observeData reads who uses data of profiles, and how large its claims are, if any profile lists data.
func (r *Reconciler) observeData(ctx context.Context, o *quota.Observed) error {
	claimed := map[string]bool{}
	listed := false
	for _, p := range o.Profiles {
		for _, set := range p.Object.Spec.DataSets {
			listed = true
			for _, v := range set.Versions {
				claimed[v.Claim] = true
			}
		}
	}
	if !listed {
		return nil
	}
	o.DataUses = map[string][]datasets.Use{}
	jobs := &v1beta1.ElasticTrainingJobList{}
	if err := r.listAll(ctx, jobs); err != nil {
		return err
	}
	for i := range jobs.Items {
		if used := datasets.UsedBy(&jobs.Items[i]); len(used) > 0 {
			key := client.ObjectKeyFromObject(&jobs.Items[i])
			o.DataUses[key.Namespace] = append(o.DataUses[key.Namespace], datasets.Use{Job: key, Data: used})
		}
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.listAll(ctx, claims); err != nil {
		return err
	}
	o.DataSpace = map[types.NamespacedName]resource.Quantity{}
	for i := range claims.Items {
		if c := &claims.Items[i]; claimed[c.Name] {
			o.DataSpace[client.ObjectKeyFromObject(c)] = c.Status.Capacity[corev1.ResourceStorage]
		}
	}
	return nil
}

// readDataClaim is what a profile says of a claim with data.
func readDataClaim(o client.Object) any {
	if c, ok := o.(*corev1.PersistentVolumeClaim); ok {
		return c.Status.Capacity[corev1.ResourceStorage]
	}
	return nil
}
