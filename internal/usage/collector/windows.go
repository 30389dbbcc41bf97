package collector

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/quota/profilecache"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// +kubebuilder:rbac:groups=tideline.io,resources=resourcequotaprofiles,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch

// windows are for how many days back it counts what was used, by namespace, as profiles said when they were read. The zero value
// has the default for all.
type windows struct {
	profiles *profilecache.Profiles
	most     int
	// days are those of namespaces that were learnt. They are not changed once others read them.
	days map[string]int
}

// readWindows reads the profiles, from caches.
func readWindows(ctx context.Context, reader client.Reader) (*windows, error) {
	profiles, err := profilecache.ReadProfiles(ctx, reader)
	if err != nil {
		return nil, err
	}
	w := &windows{profiles: profiles, days: map[string]int{}}
	for _, p := range profiles.All() {
		w.most = max(w.most, sizing.WindowDays(p))
	}
	return w, nil
}

// learnWindow is the window of a namespace, which ofNamespace returns from then on. A deleted namespace and one without a
// profile have the default.
func (w *windows) learnWindow(ctx context.Context, namespace string) int {
	if _, known := w.days[namespace]; known || w.profiles == nil {
		return w.ofNamespace(namespace)
	}
	days := sizing.DefaultWindowDays
	if _, profile, err := w.profiles.ProfileOf(ctx, namespace); err == nil {
		days = sizing.WindowDays(profile)
	}
	w.days[namespace] = days
	return days
}

// ofNamespace is the window of a namespace that was learnt, and the default for others.
func (w *windows) ofNamespace(namespace string) int {
	if days, known := w.days[namespace]; known {
		return days
	}
	return sizing.DefaultWindowDays
}

// longestWindow is the longest of all.
func (w *windows) longestWindow() int { return max(w.most, sizing.DefaultWindowDays) }
