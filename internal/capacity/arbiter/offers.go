package arbiter

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

// offersInterval is how long offers are reused: they are for people, and computing them visits all nodes.
const offersInterval = time.Minute

// Offer is how much of one model of an accelerator gangs of a queue could have now.
type Offer struct {
	capacity.Offer

	// Resource of the accelerator, and its Model; empty for nodes that name none.
	Resource, Model string
}

// offers are those that were computed last.
type offers struct {
	at      time.Time
	byQueue map[string][]Offer
}

// OffersFor returns, for each queue that exists, how much of each model of accelerator its gangs could have. The answer is up
// to a minute old; old is its age, zero for a new one. It is not for concurrent use.
func (a *Arbiter) OffersFor(ctx context.Context, queues []string) (byQueue map[string][]Offer, old time.Duration, err error) {
	now := a.now()
	// A queue that does not exist has no offer, and must not have all others computed anew each time.
	known := !slices.ContainsFunc(queues, func(q string) bool {
		_, is := a.offers.byQueue[q]
		return !is && a.queueExists(ctx, q)
	})
	if age := now.Sub(a.offers.at); known && age < offersInterval && age >= 0 {
		return a.offers.byQueue, age, nil
	}
	m, done, err := a.mirrored(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	snapshot := a.newCollector(m, now).snapshot(ctx)
	model := capacity.New(snapshot)
	a.offers = offers{at: now, byQueue: map[string][]Offer{}}
	for _, queue := range queues {
		if !slices.ContainsFunc(snapshot.Queues, func(q capacity.Queue) bool { return q.Name == queue }) {
			continue
		}
		all := []Offer{}
		for _, device := range listDevices(snapshot.Nodes, a.config.Accelerators) {
			device.Offer = model.OfferFor(queue, corev1.ResourceName(device.Resource), device.nodeSelector(a.config.Accelerators))
			all = append(all, device)
		}
		a.offers.byQueue[queue] = all
	}
	return a.offers.byQueue, 0, nil
}

// queueExists is true if there is a Queue of that name.
func (a *Arbiter) queueExists(ctx context.Context, queue string) bool {
	return a.reader.Get(ctx, types.NamespacedName{Name: queue}, gang.NewQueue()) == nil
}

// listDevices lists the accelerators that nodes have, by resource and model.
func listDevices(nodes []capacity.Node, known config.Accelerators) []Offer {
	there := map[[2]string]bool{}
	for _, n := range nodes {
		for _, name := range known.ResourceNames() {
			if label, _ := known.ModelLabel(name); n.Allocatable[corev1.ResourceName(name)] > 0 {
				there[[2]string{name, n.Labels[label]}] = true
			}
		}
	}
	var all []Offer
	for _, key := range slices.SortedFunc(maps.Keys(there), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		all = append(all, Offer{Resource: key[0], Model: key[1]})
	}
	return all
}

// nodeSelector matches the nodes that have the model; all nodes if the offer has none.
func (o Offer) nodeSelector(known config.Accelerators) map[string]string {
	if o.Model == "" {
		return nil
	}
	label, _ := known.ModelLabel(o.Resource)
	return map[string]string{label: o.Model}
}
