package costreport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/cost/mail"
	"github.com/tideline-io/tideline/internal/cost/report"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// post is what is mailed of the last report.
type post struct {
	kept     *ledger.KeptReport
	computed *cost.Report
	server   mail.Server
	decision *delivery.Decision
}

// sending tells whether mails are sent in this round.
func (v *view) sending() bool { return v.post != nil && len(v.post.decision.Send) > 0 }

// lookAtMails finds who is to get the last report, and who has got it.
func (r *Reconciler) lookAtMails(ctx context.Context, v *view) error {
	wanted := v.report.Spec.Mail
	if wanted == nil || len(v.kept) == 0 || costreport.Outdated(v.report, v.kept[0].To) {
		r.metrics.observeMails(v.report.Name, nil, 0, false)
		return nil
	}
	p := &post{kept: &v.kept[0]}
	var users []string
	if wanted.Personal {
		var err error
		if p.computed, err = r.data(ctx, v, p.kept); err != nil {
			return err
		}
		for i := range p.computed.By[cost.ByUser] {
			users = append(users, p.computed.By[cost.ByUser][i].Key.User)
		}
	}
	sent, err := v.ledger.Deliveries(ctx, string(v.report.UID), p.kept.To)
	if err != nil {
		return err
	}
	recipients, missing, bad := mail.Recipients(wanted.To, wanted.Personal, users, v.people)
	round := delivery.Round{
		Report: string(v.report.UID), Period: p.kept.To, Next: costreport.MailedUntil(&v.report.Spec, &v.observed.Kept[0]),
		Recipients: recipients, Deliveries: sent, Again: sendAgain(v.report),
		Retry: time.Duration(r.config.Reports.MailRetrySeconds) * time.Second,
	}
	p.decision = delivery.Plan(round, r.now())
	v.observed.Mail = &costreport.Mail{
		Sent: p.decision.Sent, Of: len(recipients) + len(bad), Missing: len(missing), Again: p.decision.Retry,
	}
	v.observed.Mail.Refused = slices.Concat(bad, refused(p.decision))
	var problem string
	if len(p.decision.Send) > 0 {
		if p.server, problem, err = r.server(ctx, wanted.SMTPSecretName); err != nil {
			return err
		}
	}
	r.metrics.observeMails(v.report.Name, p.decision, len(bad), problem != "")
	v.observed.Mail.Reason, v.observed.Mail.Message = words(p.decision, problem)
	if problem != "" {
		v.observed.Mail.Again = r.now().Add(time.Minute)
		return nil
	}
	v.post = p
	return nil
}

// sendAgain is when somebody wanted mails of which nobody knows whether they arrived to be sent again.
func sendAgain(object *v1alpha1.CostReport) time.Time {
	at, err := time.Parse(time.RFC3339, object.Annotations[v1alpha1.AnnotationMailAgain])
	if err != nil {
		return time.Time{}
	}
	return at
}

// server reads the server for mail; problem says in words what is wrong with its Secret.
func (r *Reconciler) server(ctx context.Context, name string) (s mail.Server, problem string, err error) {
	data, problem, err := r.secret(ctx, name)
	if problem != "" || err != nil {
		return s, problem, err
	}
	s, err = mail.ParseServer(data, r.config.Reports.AllowPlainMail)
	if err != nil {
		return s, fmt.Sprintf("Secret %s: %v.", name, err), nil
	}
	s.Timeout = time.Duration(r.config.Reports.MailTimeoutSeconds) * time.Second
	return s, "", nil
}

// refused are those who will not get their mail, or of whom nobody knows.
func refused(d *delivery.Decision) []string {
	var names []string
	for _, of := range []struct {
		deliveries []ledger.Delivery
		why        string
	}{{d.Refused, "refused"}, {d.Unconfirmed, "unconfirmed"}, {d.Missed, "too late"}} {
		for i := range of.deliveries {
			names = append(names, fmt.Sprintf("%s (%s)", of.deliveries[i].Address, of.why))
		}
	}
	return names
}

// words say why some mails are not sent yet.
func words(d *delivery.Decision, problem string) (reason, message string) {
	retry := ""
	if !d.Retry.IsZero() {
		retry = " The next try is at " + d.Retry.UTC().Format(time.RFC3339) + "."
	}
	switch {
	case problem != "":
		return v1alpha1.ReasonInvalidMailServer, problem
	case len(d.Send) > 0:
		return v1alpha1.ReasonMailing, fmt.Sprintf("%d are being sent.", len(d.Send))
	case len(d.Held) > 0:
		return v1alpha1.ReasonInvalidMailServer, sentence(d.Held[0].Error) + retry
	case len(d.Waiting) > 0:
		return v1alpha1.ReasonMailServerUnavailable, sentence(d.Waiting[0].Error) + retry
	}
	return "", ""
}

func sentence(said string) string {
	if said == "" {
		return ""
	}
	return strings.ToUpper(said[:1]) + strings.TrimSuffix(said[1:], ".") + "."
}

// deliver sends the mails that are due.
func (r *Reconciler) deliver(ctx context.Context, v *view) error {
	if !v.sending() {
		return nil
	}
	p := v.post
	if p.computed == nil {
		var err error
		if p.computed, err = r.data(ctx, v, p.kept); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	deleted := false
	err := mail.Deliver(ctx, v.ledger, p.server, p.decision, func(d ledger.Delivery) (mail.Message, error) {
		if deleted = r.deleted(ctx, v.report); deleted {
			end()
			return mail.Message{}, errDeleted
		}
		return r.compose(v, d)
	}, r.now)
	if deleted {
		return nil
	}
	r.metrics.mailed(v.report.Name, len(p.decision.Send))
	return err
}

var errDeleted = errors.New("the CostReport was deleted meanwhile")

// deleted tells whether a CostReport was deleted since it was looked at: many mails take long, and none can be called back. While
// the API server does not answer nobody knows, and they go on.
func (r *Reconciler) deleted(ctx context.Context, object *v1alpha1.CostReport) bool {
	current := &v1alpha1.CostReport{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(object), current)
	return apierrors.IsNotFound(err) || err == nil && (current.UID != object.UID || current.DeletionTimestamp != nil)
}

// compose writes one mail.
func (r *Reconciler) compose(v *view, d ledger.Delivery) (mail.Message, error) {
	p := v.post
	o := r.options(v.report, int32(p.kept.Revision))
	o.Person = d.User
	written, err := report.Compose(*p.computed, o)
	if err != nil {
		return mail.Message{}, err
	}
	to := delivery.Recipient{Kind: d.Kind, User: d.User, Address: d.Address}
	return mail.Message{
		ID: mail.MessageID(string(v.report.UID), p.kept.To, p.kept.Revision, to), From: v.report.Spec.Mail.From, To: d.Address,
		Subject: written.Subject, Date: p.kept.MadeAt, Text: written.Text, HTML: written.HTML,
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
