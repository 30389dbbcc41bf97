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

// Kinds waits for kinds that other projects install and that the API server may not serve yet.
type Kinds struct {
	mapper meta.RESTMapper
	kinds  []schema.GroupVersionKind
	log    logr.Logger

	mu      sync.Mutex
	missing string
	waiting []waiter
}

// waiter is what to do once the kinds are served.
type waiter struct{ watch, wake func(context.Context) error }

// NewKinds returns a Kinds that has not looked yet.
func NewKinds(mapper meta.RESTMapper, log logr.Logger, kinds ...schema.GroupVersionKind) *Kinds {
	return &Kinds{mapper: mapper, kinds: kinds, log: log}
}

// MissingKinds lists the kinds that are not served, for messages; empty if all are.
func (k *Kinds) MissingKinds() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.missing
}

// LookForKinds asks discovery which kinds are missing. It returns an error if discovery does not answer.
func (k *Kinds) LookForKinds() error {
	missing, err := k.look()
	if err == nil {
		k.note(missing)
	}
	return err
}

func (k *Kinds) note(missing string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.missing = missing
}

func (k *Kinds) look() (string, error) {
	var missing []string
	for _, kind := range k.kinds {
		_, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		var group *discovery.ErrGroupDiscoveryFailed
		switch {
		case meta.IsNoMatchError(err), errors.As(err, &group):
			missing = append(missing, fmt.Sprintf("%s (%s)", kind.Kind, kind.GroupVersion()))
		case err != nil:
			return "", fmt.Errorf("ask whether the API server serves %s: %w", kind.Kind, err)
		}
	}
	return strings.Join(missing, " and "), nil
}

// WhenServed calls watch, at once or, if a kind is missing, when Start has found all of them.
func (k *Kinds) WhenServed(ctx context.Context, watch func(context.Context) error) error {
	if k.MissingKinds() == "" {
		return watch(ctx)
	}
	k.WatchThenWake(watch, func(context.Context) error { return nil })
	return nil
}

// WatchThenWake has Start call watch once all kinds are served, and wake after all watches have begun. Only then does
// MissingKinds return nothing, so that a reconciler that sees no missing kind can rely on its watch.
func (k *Kinds) WatchThenWake(watch, wake func(context.Context) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting = append(k.waiting, waiter{watch, wake})
}

// Start waits for the kinds and then calls what was passed to WatchThenWake before. It returns at once if nothing was.
func (k *Kinds) Start(ctx context.Context) error {
	k.mu.Lock()
	waiting := k.waiting
	k.mu.Unlock()
	if len(waiting) == 0 {
		return nil
	}
	k.log.Info("The API server does not serve all kinds that the operator needs; jobs wait until they are installed",
		"missing", k.MissingKinds())
	err := wait.PollUntilContextCancel(ctx, kindsInterval, true, func(context.Context) (bool, error) {
		missing, err := k.look()
		return missing == "" && err == nil, nil // If discovery does not answer, it is asked again.
	})
	if err != nil {
		return nil //nolint:nilerr // the operator is ending
	}
	k.log.Info("The API server serves all kinds now; jobs continue")
	for _, w := range waiting {
		if err := w.watch(ctx); err != nil {
			return err
		}
	}
	k.note("")
	for _, w := range waiting {
		if err := w.wake(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AwaitKinds returns when the API server serves all kinds, or after patience an error that names those that are missing. In an
// upgrade an operator may start some seconds before the API server serves a new version of its kinds.
func AwaitKinds(
	ctx context.Context, mapper meta.RESTMapper, log logr.Logger, patience time.Duration, kinds ...schema.GroupVersionKind,
) error {
	k := NewKinds(mapper, log, kinds...)
	said := false
	err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(context.Context) (bool, error) {
		err := k.LookForKinds()
		if missing := k.MissingKinds(); missing != "" && !said {
			said = true
			log.Info("Waiting for kinds that the API server does not serve yet", "missing", missing, "patience", patience.String())
		}
		return err == nil && k.MissingKinds() == "", err
	})
	if missing := k.MissingKinds(); missing != "" {
		return fmt.Errorf("the API server does not serve %s", missing)
	}
	return err
}
