package costreport

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/cost/mail"
	"github.com/tideline-io/tideline/internal/cost/report"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// deliverMails sends the mails that are due.
func (r *Reconciler) deliverMails(ctx context.Context, v *view, decision *costreport.Decision) error {
	if !sendsMails(decision) {
		return nil
	}
	if v.computed == nil {
		var err error
		if v.computed, err = r.readData(ctx, v, &v.kept[0]); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	deleted := false
	err := mail.Deliver(ctx, v.ledger, v.server, decision.Mails.Decision, func(d ledger.Delivery) (mail.Message, error) {
		if deleted = r.isDeleted(ctx, v.report); deleted {
			end()
			return mail.Message{}, errDeleted
		}
		return r.composeMail(v, d)
	}, r.now)
	if deleted {
		return nil
	}
	r.metrics.countMailed(v.report.Name, len(decision.Mails.Send))
	return err
}

var errDeleted = errors.New("the CostReport was deleted meanwhile")

// isDeleted tells whether a CostReport was deleted since it was read: many mails take long, and a mail cannot be recalled.
// If the API server does not answer, sending continues.
func (r *Reconciler) isDeleted(ctx context.Context, object *v1beta1.CostReport) bool {
	current := &v1beta1.CostReport{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(object), current)
	return apierrors.IsNotFound(err) || err == nil && (current.UID != object.UID || current.DeletionTimestamp != nil)
}

// sendsMails tells whether mails are sent in this round.
func sendsMails(d *costreport.Decision) bool { return d.Mails != nil && d.Mails.Begin }

// composeMail writes one mail.
func (r *Reconciler) composeMail(v *view, d ledger.Delivery) (mail.Message, error) {
	last := &v.kept[0]
	o := r.reportOptions(v.report, int32(last.Revision))
	o.Person = d.User
	if d.Kind == ledger.DeliverPeople {
		o.People = v.people.PeopleOf(d.User)
	}
	written, err := report.ComposeMail(*v.computed, o)
	if err != nil {
		return mail.Message{}, err
	}
	to := delivery.Recipient{Kind: d.Kind, User: d.User, Address: d.Address}
	return mail.Message{
		ID: mail.MessageID(string(v.report.UID), last.To, last.Revision, to), From: v.report.Spec.Mail.From, To: d.Address,
		Subject: written.Subject, Date: last.MadeAt, Text: written.Text, HTML: written.HTML,
		Pictures: filesOfMail(written.Pictures), Attachments: filesOfMail(written.Attachments),
	}, nil
}

func filesOfMail(files []report.File) []mail.File {
	all := make([]mail.File, len(files))
	for i, f := range files {
		all[i] = mail.File{Name: f.Name, Type: f.Type, Content: f.Content}
	}
	return all
}
