package kube

import (
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// LogFor is the LogConstructor of a controller: its lines have the controller's name and, under key, the object that is
// reconciled.
func LogFor(mgr ctrl.Manager, controller, key string) func(*reconcile.Request) logr.Logger {
	return func(req *reconcile.Request) logr.Logger {
		log := mgr.GetLogger().WithName(controller)
		switch {
		case req == nil:
			return log
		case req.Namespace == "":
			return log.WithValues(key, req.Name)
		}
		return log.WithValues(key, req.String())
	}
}
