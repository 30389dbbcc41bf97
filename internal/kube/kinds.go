package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
)

// kindsInterval is how often discovery is asked for missing kinds.
const kindsInterval = 5 * time.Second

// Kinds waits for kinds of somebody else's that the API server may not serve yet.
type Kinds struct {
	mapper meta.RESTMapper
	kinds  []schema.GroupVersionKind
	log    logr.Logger

	mu      sync.Mutex
	missing string
}

// NewKinds returns a Kinds that has not looked yet.
func NewKinds(mapper meta.RESTMapper, log logr.Logger, kinds ...schema.GroupVersionKind) *Kinds {
	return &Kinds{mapper: mapper, kinds: kinds, log: log}
}

// Missing lists the kinds that are not served, for people; it is empty when all are.
func (k *Kinds) Missing() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.missing
}

// Look asks discovery which kinds are missing, and returns an error if it does not answer.
func (k *Kinds) Look() error {
	var missing []string
	for _, kind := range k.kinds {
		_, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		var group *discovery.ErrGroupDiscoveryFailed
		switch {
		case meta.IsNoMatchError(err), errors.As(err, &group):
			missing = append(missing, fmt.Sprintf("%s (%s)", kind.Kind, kind.GroupVersion()))
		case err != nil:
			return fmt.Errorf("ask whether the API server serves %s: %w", kind.Kind, err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.missing = strings.Join(missing, " and ")
	return nil
}

// WaitThen calls ready once all kinds are served. It says once in the log that it waits.
func (k *Kinds) WaitThen(ctx context.Context, ready func(context.Context) error) error {
	k.log.Info("Kinds are missing; jobs wait until they are installed", "missing", k.Missing())
	err := wait.PollUntilContextCancel(ctx, kindsInterval, true, func(context.Context) (bool, error) {
		if err := k.Look(); err != nil {
			return false, nil //nolint:nilerr // discovery is asked again
		}
		return k.Missing() == "", nil
	})
	if err != nil {
		return nil //nolint:nilerr // the operator is ending
	}
	k.log.Info("All kinds are served now; jobs go on")
	return ready(ctx)
}
