// Package volcano reads PodGroups and the configuration of Volcano's scheduler from caches. Package gang interprets them.
package volcano

import (
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

// ReadGroup reads a PodGroup of an object by its name; nil if there is none or it is being deleted.
func ReadGroup(ctx context.Context, reader client.Reader, owner client.Object, name string) (*gang.State, error) {
	podGroup := gang.NewPodGroup()
	found, err := kube.IsOwned(ctx, reader, owner, name, podGroup)
	if !found || err != nil || podGroup.GetDeletionTimestamp() != nil {
		return nil, err
	}
	state := gang.StateOf(podGroup)
	return &state, nil
}

// StripOthers returns a transform of caches. It strips as [kube.StripOthers] does, keeps of PodGroups only what is read, and has
// objects share what they have alike.
func StripOthers() func(any) (any, error) {
	var alike kube.Copies
	return func(o any) (any, error) {
		stripped, err := kube.StripOthers(gang.Strip(o, alike.ShareResources))
		if object, ok := stripped.(client.Object); ok {
			alike.ShareObject(object)
		}
		return stripped, err
	}
}

// SchedulerConf is the configuration of Volcano's scheduler, in a cache of its own: the manager's cache holds only ConfigMaps
// with our label.
type SchedulerConf struct {
	cache cache.Cache

	mu sync.Mutex
	// examined is the configuration that was examined last, and obstacles what was found; both nil before.
	examined  map[string]string
	obstacles []string
}

// AddSchedulerConf adds the cache to the manager, which starts it before any controller.
func AddSchedulerConf(mgr ctrl.Manager) (*SchedulerConf, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: kube.StripMetadata,
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{gang.SchedulerConfigMap.Namespace: {}},
			Field:      fields.OneTermEqualSelector("metadata.name", gang.SchedulerConfigMap.Name),
		}},
	})
	if err == nil {
		err = mgr.Add(startedFirst{c})
	}
	if err != nil {
		return nil, fmt.Errorf("cache the configuration of Volcano's scheduler: %w", err)
	}
	return &SchedulerConf{cache: c}, nil
}

// startedFirst is a cache that the manager starts together with its own, before controllers.
type startedFirst struct{ cache.Cache }

// GetCache marks it as a cache for the manager.
func (c startedFirst) GetCache() cache.Cache { return c.Cache }

// ListObstacles lists what in the configuration keeps Volcano from taking surplus, as clauses for messages. It examines each
// configuration once, because every reconcile asks. The list must not be changed.
func (s *SchedulerConf) ListObstacles(ctx context.Context) ([]string, error) {
	conf := &corev1.ConfigMap{}
	err := s.cache.Get(ctx, gang.SchedulerConfigMap, conf, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read the configuration of Volcano's scheduler: %w", err)
	}
	return s.examine(conf.Data), nil
}

func (s *SchedulerConf) examine(data map[string]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.obstacles == nil || !maps.Equal(s.examined, data) {
		s.examined, s.obstacles = data, append([]string{}, gang.ListObstacles(data)...)
	}
	return s.obstacles
}

// ChangeSource is a source that wakes a controller when the configuration changes.
func (s *SchedulerConf) ChangeSource(h handler.EventHandler) source.Source {
	return source.Kind[client.Object](s.cache, &corev1.ConfigMap{}, h)
}
