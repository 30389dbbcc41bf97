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

// Setup has the leader create missing PriorityClasses of tiers and reservations once, when it begins to lead. It never changes or
// deletes one: the value of a class cannot change, and running pods carry it.
func Setup(mgr ctrl.Manager, tiers config.Tiers) error {
	return mgr.Add(&creator{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), tiers: tiers, log: mgr.GetLogger().WithName("priorityclass"),
		// From a second to five minutes: the API server may refuse until a person corrects the operator's rights.
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

// Start tries until all classes exist. After the first try, and at the end, it logs which classes are missing or have another
// value than the configuration. The operator works meanwhile: jobs of other tiers do not depend on it.
func (c *creator) Start(ctx context.Context) error {
	delay, first := c.again.DelayFunc(), true
	_ = delay.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := c.createMissing(ctx)
		if err != nil && ctx.Err() == nil {
			c.log.Error(err, "Could not create all PriorityClasses of the tiers; the operator tries again within five minutes")
		}
		if first || err == nil {
			c.logProblems(ctx)
		}
		first = false
		return err == nil, nil
	}) // its only error is that the operator ends
	return nil
}

// logProblems logs which classes are not as configured.
func (c *creator) logProblems(ctx context.Context) {
	have, err := Read(ctx, c.live)
	if err != nil {
		if ctx.Err() == nil {
			c.log.Error(err, "Could not check whether the tiers have their PriorityClasses")
		}
		return
	}
	for _, p := range FindProblems(have, c.tiers) {
		c.log.Error(nil, p.What, "do", p.Do, "manifest", p.Manifest)
	}
}

// createMissing creates the classes that do not exist. It goes on to the next if one cannot be created.
func (c *creator) createMissing(ctx context.Context) error {
	there, err := Read(ctx, c.live)
	if err != nil {
		return err
	}
	var failed []error
	classes := c.tiers.PriorityClasses()
	for i := range classes {
		class := &classes[i]
		if _, exists := there[class.Name]; exists {
			continue
		}
		switch err := c.client.Create(ctx, class); {
		case err == nil:
			c.log.Info("Created a PriorityClass", "class", class.Name, "value", class.Value)
		case !apierrors.IsAlreadyExists(err):
			failed = append(failed, fmt.Errorf("create PriorityClass %s: %w", class.Name, err))
		}
	}
	return errors.Join(failed...)
}
