// Package whatifasker answers what another profile would have changed, from the ledger and the caches.
package whatifasker

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/capacity/arbiter"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/dutycycle"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/quota"
	"github.com/tideline-io/tideline/internal/quota/profilecache"
	"github.com/tideline-io/tideline/internal/quota/whatif"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// askTime bounds how long an answer takes: a webhook has ten seconds in all, and the API server was asked before.
const askTime = 5 * time.Second

var (
	errResting  = errors.New("the operator plays for others now, or rests: ask again in a minute")
	errTooLong  = errors.New("to read and play that again takes too long: ask for a shorter time")
	errNoLedger = errors.New("the operator keeps no ledger: configure one, and ask when it knows some days")
)

// Asker answers. Its methods may be called side by side.
type Asker struct {
	reader client.Reader
	config *config.Configuration
	// open opens the ledger to read it.
	open func(context.Context) (*ledger.Ledger, error)
	// nodes are the nodes that are ready.
	nodes   func(context.Context) ([]capacity.Node, error)
	now     func() time.Time
	limiter dutycycle.Limiter
}

// NewAsker returns an Asker. now is the API server's clock.
func NewAsker(
	reader client.Reader, cfg *config.Configuration, open func(context.Context) (*ledger.Ledger, error),
	nodes func(context.Context) ([]capacity.Node, error), now func() time.Time,
) *Asker {
	return &Asker{reader: reader, config: cfg, open: open, nodes: nodes, now: now}
}

// TellChange says what a profile, as it would be, would have changed in a time that ends now, or why that is not known. names
// says whether other teams may be named.
func (a *Asker) TellChange(
	ctx context.Context, changed *v1beta1.ResourceQuotaProfile, window time.Duration, names bool,
) []string {
	report, err := a.ask(ctx, changed, window)
	if err != nil {
		if errors.Is(err, arbiter.ErrNotJudging) {
			err = errors.New("the replica of the operator that answered does not lead, or has just begun: ask again")
		}
		return []string{fmt.Sprintf("What profile %s would have changed is not known: %v.", changed.Name, err)}
	}
	report.Names = names
	return report.SayChange()
}

func (a *Asker) ask(
	ctx context.Context, changed *v1beta1.ResourceQuotaProfile, window time.Duration,
) (report *whatif.Report, err error) {
	if !a.config.Ledger.IsConfigured() {
		return nil, errNoLedger
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if !a.limiter.DoWork(a.now, func() { report, err = a.play(ctx, changed, window) }) {
		return nil, errResting
	}
	if err != nil && !errors.Is(err, errTooMuch) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, errTooLong
	}
	return report, err
}

func (a *Asker) play(ctx context.Context, changed *v1beta1.ResourceQuotaProfile, window time.Duration) (*whatif.Report, error) {
	cluster, profiles, err := a.readCluster(ctx)
	if err != nil {
		return nil, err
	}
	l, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	to := a.now().Truncate(time.Second)
	past, err := readPast(ctx, l, to.Add(-window), to)
	if err != nil {
		return nil, err
	}
	stop := func() bool { return ctx.Err() != nil }
	r := &whatif.Report{Past: past, Nodes: len(cluster.Nodes), Profile: changed.Name}
	if r.AsIs = whatif.PlayPast(past, cluster, profiles, stop); r.AsIs == nil {
		return nil, errTooLong
	}
	if r.Changed = whatif.PlayPast(past, cluster, whatif.ReplaceProfile(profiles, changed), stop); r.Changed == nil {
		return nil, errTooLong
	}
	return r, nil
}

// readCluster reads the cluster as it is, and the profiles.
func (a *Asker) readCluster(ctx context.Context) (*whatif.Cluster, []*v1beta1.ResourceQuotaProfile, error) {
	c := &whatif.Cluster{Config: a.config}
	var err error
	if c.Nodes, err = a.nodes(ctx); err != nil {
		return nil, nil, err
	}
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := a.reader.List(ctx, namespaces, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the namespaces: %w", err)
	}
	for i := range namespaces.Items {
		c.Namespaces = append(c.Namespaces, quota.Namespace{Name: namespaces.Items[i].Name, Labels: namespaces.Items[i].Labels})
	}
	queues := gang.NewQueueList()
	if err := a.reader.List(ctx, queues, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the Queues: %w", err)
	}
	c.Queues = gang.AllQueues(queues)
	profiles, err := profilecache.ReadProfiles(ctx, a.reader)
	if err != nil {
		return nil, nil, err
	}
	return c, profiles.All(), nil
}
