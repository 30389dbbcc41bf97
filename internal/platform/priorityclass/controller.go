// Package priorityclass creates the PriorityClasses of tiers and of reservations that a cluster does not have.
package priorityclass

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=list;create

// Setup has whoever leads create the PriorityClasses of the tiers and of reservations that are missing, once, when it begins to
// lead. It never changes one, nor deletes one: a class's value cannot change, and pods that run carry it.
func Setup(mgr ctrl.Manager, tiers config.Tiers) error {
	return mgr.Add(&creator{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), tiers: tiers, log: mgr.GetLogger().WithName("priorityclass"),
		// From a second to five minutes: the API server may refuse for as long as it takes somebody to mend the operator's rights.
		again: wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 5 * time.Minute},
	})
}

// creator creates classes once.
type creator struct {
	client client.Client
	// live reads past the caches, which hold no PriorityClasses.
	live  client.Reader
	tiers config.Tiers
	log   logr.Logger
	again wait.Backoff
}

// NeedLeaderElection keeps replicas that do not lead from creating anything.
func (c *creator) NeedLeaderElection() bool { return true }

// Start tries until all classes are there. After the first try, and at the end, it says which are missing or have another value
// than the configuration. The operator goes on meanwhile, and afterwards: jobs of other tiers are none the worse for it.
func (c *creator) Start(ctx context.Context) error {
	delay, first := c.again.DelayFunc(), true
	_ = delay.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := c.createMissing(ctx)
		if err != nil && ctx.Err() == nil {
			c.log.Error(err, "Cannot see to the PriorityClasses of all tiers; tried again in at most five minutes")
		}
		if first || err == nil {
			c.examine(ctx)
		}
		first = false
		return err == nil, nil
	}) // its only error is that the operator ends
	return nil
}

// examine says of which tiers the classes are not as configured.
func (c *creator) examine(ctx context.Context) {
	have, err := Read(ctx, c.live)
	if err != nil {
		if ctx.Err() == nil {
			c.log.Error(err, "Cannot tell whether the tiers have their PriorityClasses")
		}
		return
	}
	for _, p := range Judge(have, c.tiers) {
		c.log.Error(nil, p.What, "do", p.Do, "manifest", p.Manifest)
	}
}

// createMissing creates the classes that are not there. One that cannot be created keeps no other from it.
func (c *creator) createMissing(ctx context.Context) error {
	there, err := Read(ctx, c.live)
	if err != nil {
		return err
	}
	var failed []error
	classes := c.tiers.Classes()
	for i := range classes {
		class := &classes[i]
		if _, exists := there[class.Name]; exists {
			continue
		}
		switch err := c.client.Create(ctx, class); {
		case err == nil:
			c.log.Info("PriorityClass created", "class", class.Name, "value", class.Value)
		case !apierrors.IsAlreadyExists(err):
			failed = append(failed, fmt.Errorf("create PriorityClass %s: %w", class.Name, err))
		}
	}
	return errors.Join(failed...)
}
