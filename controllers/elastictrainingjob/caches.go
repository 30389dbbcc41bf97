package elastictrainingjob

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

// CachedObjects says how the manager's cache holds what the reconciler and the arbiter read: every node, pod and volume, stripped
// to what is read of it, and the Services and ConfigMaps of jobs.
func CachedObjects(cfg *config.Configuration) (map[client.Object]cache.ByObject, error) {
	ours, err := labels.NewRequirement(v1alpha1.LabelJob, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select by label %s: %w", v1alpha1.LabelJob, err)
	}
	selector := labels.NewSelector().Add(*ours)
	return map[client.Object]cache.ByObject{
		&corev1.Node{}:      {Transform: kube.StripNode},
		&corev1.Pod{}:       {Transform: kube.StripPod(cfg.Ledger.UserLabel)},
		&corev1.Service{}:   {Label: selector},
		&corev1.ConfigMap{}: {Label: selector},

		&corev1.PersistentVolumeClaim{}: {Transform: kube.StripVolumeClaim},
		&corev1.PersistentVolume{}:      {Transform: kube.StripVolume},
	}, nil
}

// schedulerCache holds one object, the configuration of Volcano's scheduler. It has no label of ours, and one cache selects the
// ConfigMaps that it holds in one way.
type schedulerCache struct{ cache.Cache }

// GetCache lets the manager start it with its own, before any controller.
func (c schedulerCache) GetCache() cache.Cache { return c.Cache }

func addSchedulerCache(mgr ctrl.Manager) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: kube.StripMetadata,
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{gang.SchedulerConfigMap.Namespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", gang.SchedulerConfigMap.Name),
		}},
	})
	if err == nil {
		err = mgr.Add(schedulerCache{c})
	}
	if err != nil {
		return nil, fmt.Errorf("cache the configuration of Volcano's scheduler: %w", err)
	}
	return c, nil
}
