package why

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
)

// requestTimeout bounds each request of the present form.
const requestTimeout = 15 * time.Second

// byUID selects the events of one object.
const byUID = "involvedObject.uid"

// answerNow reads a job with the user's own rights, and says what it does now and why. Kind is job, merge, or empty for either.
func answerNow(
	ctx context.Context, c client.Client, name types.NamespacedName, kind string, output cli.Output, to io.Writer, now time.Time,
) error {
	p, err := read(ctx, c, name, kind)
	if err != nil {
		return err
	}
	n := explain(p, now)
	if output.JSON() {
		return cli.PrintJSON(to, n)
	}
	n.print(to, now)
	return nil
}

// other is the kind that a job of the name may have instead.
var other = map[string]string{
	v1beta1.ElasticTrainingJobKind: v1beta1.MergeJobKind, v1beta1.MergeJobKind: v1beta1.ElasticTrainingJobKind,
}

// read reads the job, its events and its profile. Only the job must be readable.
func read(ctx context.Context, c client.Client, name types.NamespacedName, kind string) (*present, error) {
	training, merge := &v1beta1.ElasticTrainingJob{}, &v1beta1.MergeJob{}
	p := &present{}
	var denied error
	var absent string // the kind that has no such job
	if kind != "merge" {
		switch err := c.Get(ctx, name, training); {
		case err == nil:
			p.training = training
		case apierrors.IsNotFound(err):
			absent = v1beta1.ElasticTrainingJobKind
		default:
			denied = err
		}
	}
	if kind != "job" {
		switch err := c.Get(ctx, name, merge); {
		case err == nil:
			p.merge = merge
		case apierrors.IsNotFound(err):
			absent = v1beta1.MergeJobKind
		default:
			denied = err
		}
	}
	switch {
	case p.training != nil && p.merge != nil:
		return nil, errors.New("there is an ElasticTrainingJob and a MergeJob of this name: say which with --kind job or --kind merge")
	case p.training == nil && p.merge == nil:
		return nil, explainMissing(name, absent, denied)
	}
	p.readMore(ctx, c)
	return p, nil
}

// explainMissing says why no job of the name was read: absent is a kind that has none, and denied the error of a kind that could
// not be read.
func explainMissing(name types.NamespacedName, absent string, denied error) error {
	switch {
	case meta.IsNoMatchError(denied):
		return errors.New("the cluster does not know jobs of Tideline, because it is not installed there")
	case denied != nil && absent != "":
		return fmt.Errorf("there is no %s %s in namespace %s, and whether there is a %s cannot be read: %w", absent, name.Name,
			name.Namespace, other[absent], denied)
	case denied != nil:
		return denied
	}
	return fmt.Errorf("there is no ElasticTrainingJob or MergeJob %s in namespace %s; of a deleted one, --at TIME tells from "+
		"the ledger", name.Name, name.Namespace)
}

// readMore reads what makes the answer better.
func (p *present) readMore(ctx context.Context, c client.Client) {
	job, s := p.status()
	events := &corev1.EventList{}
	err := c.List(ctx, events, client.InNamespace(job.GetNamespace()), client.MatchingFields{byUID: string(job.GetUID())})
	if err != nil {
		p.unread = append(p.unread, "Its events cannot be read: "+err.Error())
	}
	p.events = events.Items
	if s.profile == "" || s.profile == v1beta1.DefaultProfile {
		return
	}
	profile := &v1beta1.ResourceQuotaProfile{}
	switch err := c.Get(ctx, client.ObjectKey{Name: s.profile}, profile); {
	case err == nil:
		p.profile = profile
	case apierrors.IsForbidden(err):
		p.unread = append(p.unread, "You may not read its profile "+s.profile+".")
	default:
		p.unread = append(p.unread, "Its profile cannot be read: "+err.Error())
	}
}
