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

// offersInterval is how long offers hold: they are for people, and all nodes are asked for them.
const offersInterval = time.Minute

// Offer is what of one model of an accelerator gangs of a queue could have now.
type Offer struct {
	capacity.Offer

	// Resource of the accelerator, and its Model; empty for nodes that name none.
	Resource, Model string
}

// offers are those that were asked for last.
type offers struct {
	at      time.Time
	byQueue map[string][]Offer
}

// Offers says what gangs of the queues could have now of each model of the accelerators that nodes have, as it is or was within a
// minute; nothing of queues that do not exist. Old is how old that is; zero for what was looked at now. It is not for concurrent
// use.
func (a *Arbiter) Offers(ctx context.Context, queues []string) (byQueue map[string][]Offer, old time.Duration, err error) {
	now := a.now()
	known := !slices.ContainsFunc(queues, func(q string) bool {
		_, is := a.offers.byQueue[q]
		return !is && a.exists(ctx, q)
	})
	if age := now.Sub(a.offers.at); known && age < offersInterval && age >= 0 {
		return a.offers.byQueue, age, nil
	}
	c, _, _, err := a.read(ctx, now)
	if err != nil {
		return nil, 0, err
	}
	model := capacity.New(c.in.snapshot)
	a.offers = offers{at: now, byQueue: map[string][]Offer{}}
	for _, queue := range queues {
		if !slices.ContainsFunc(c.in.snapshot.Queues, func(q capacity.Queue) bool { return q.Name == queue }) {
			continue
		}
		all := []Offer{}
		for _, device := range devices(c.in.snapshot.Nodes, a.config.Accelerators) {
			device.Offer = model.Offer(queue, corev1.ResourceName(device.Resource), device.selector(a.config.Accelerators))
			all = append(all, device)
		}
		a.offers.byQueue[queue] = all
	}
	return a.offers.byQueue, 0, nil
}

// exists tells whether there is a Queue of a name.
func (a *Arbiter) exists(ctx context.Context, queue string) bool {
	return a.reader.Get(ctx, types.NamespacedName{Name: queue}, gang.NewQueue()) == nil
}

// devices are the accelerators that nodes have, by resource and model.
func devices(nodes []capacity.Node, known config.Accelerators) []Offer {
	there := map[[2]string]bool{}
	for _, n := range nodes {
		for _, name := range known.Resources() {
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

// selector chooses the nodes that have the model; all nodes for none.
func (o Offer) selector(known config.Accelerators) map[string]string {
	if o.Model == "" {
		return nil
	}
	label, _ := known.ModelLabel(o.Resource)
	return map[string]string{label: o.Model}
}
