package costreport

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/cost/costreport"
	"github.com/tideline-io/tideline/internal/cost/delivery"
	"github.com/tideline-io/tideline/internal/cost/mail"
	"github.com/tideline-io/tideline/internal/cost/report"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

const (
	// pricesKey and peopleKey are where price list and directory stand in their ConfigMaps.
	pricesKey, peopleKey = "prices.yaml", "people.yaml"
	// smtpType is the only type of Secrets that is read. Otherwise a user who may edit CostReports could point the operator at
	// any Secret of its namespace.
	smtpType corev1.SecretType = "tideline.io/smtp"
)

// view is what a reconcile of a CostReport reads: the input of the decision, and what carrying it out needs.
type view struct {
	report   *v1beta1.CostReport
	observed costreport.Observed
	prices   *cost.Prices
	people   mail.Directory
	// ledger is open, or nil because of the obstacle.
	ledger *ledger.Ledger
	// kept are the last periods and revisions first, and numbers are those of the first one; nil for none.
	kept    []ledger.KeptReport
	numbers *report.Numbers
	// computed is the last report; nil until it is needed.
	computed *cost.Report
	// server takes mails, where one may have to be sent.
	server mail.Server
}

func (v *view) close() {
	if v.ledger != nil {
		_ = v.ledger.Close()
	}
}

// observe reads what Plan needs: the input of a report, the kept reports, and the state of the last report's mails.
func (r *Reconciler) observe(ctx context.Context, object *v1beta1.CostReport) (*view, error) {
	v := &view{report: object, observed: costreport.Observed{
		Report: object, LedgerVolatile: r.LedgerVolatile, UseUnasked: !r.config.Prometheus.IsConfigured(),
	}}
	invalid, err := r.guard.CheckSpec(ctx, object)
	if err != nil || invalid != "" {
		v.observed.Invalid, v.observed.Unknown = invalid, true
		return v, err
	}
	if err := r.observeLedger(ctx, v); err != nil {
		v.close()
		return nil, err
	}
	if v.ledger == nil {
		return v, nil
	}
	err = r.observeLists(ctx, v)
	if err == nil && !v.observed.MailUnknown {
		err = r.observeMails(ctx, v)
	}
	if err != nil {
		v.close()
		return nil, err
	}
	v.observed.Recorded = r.Complete()
	if v.observed.Obstacle == nil && v.observed.Recorded.IsZero() {
		v.observed.Obstacle = &costreport.Obstacle{
			Reason: v1beta1.ReasonLedgerUnavailable, Again: startInterval, Passing: r.now().Sub(r.began) < startTime,
			Message: "The operator has not yet recorded everything that ran before it started. Its log says why.",
		}
	}
	return v, nil
}

// observeLedger reads which reports are kept.
func (r *Reconciler) observeLedger(ctx context.Context, v *view) error {
	if !r.config.Ledger.IsConfigured() {
		v.addObstacle(v1beta1.ReasonNoLedger, true, "Reports need a ledger, and this operator keeps none. An administrator "+
			"says in "+
			"its configuration where to keep one (ledger.file or ledger.postgresDSNFile).")
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	l, err := r.OpenLedger(limited)
	if err == nil {
		v.ledger = l
		v.kept, err = l.QueryReports(limited, string(v.report.UID), "")
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		v.addObstacle(v1beta1.ReasonLedgerUnavailable, false, fmt.Sprintf("Tideline cannot read the ledger: %v. It tries again.", err))
		return nil
	}
	for i := range v.kept {
		k, numbers, err := keptOf(&v.kept[i])
		if err != nil {
			return err
		}
		v.observed.Kept = append(v.observed.Kept, k)
		if i == 0 {
			v.numbers = numbers
		}
	}
	return nil
}

func (v *view) addObstacle(reason string, stalled bool, message string) {
	v.close()
	v.ledger = nil
	v.observed.Unknown = true
	v.observed.Obstacle = &costreport.Obstacle{Reason: reason, Message: message, Stalled: stalled}
}

// keptSummary is what is kept of a report for its CostReport's status.
type keptSummary struct {
	v1beta1.ReportSummary
	Asked   bool            `json:"asked,omitempty"`
	Numbers *report.Numbers `json:"numbers,omitempty"`
}

func keptOf(r *ledger.KeptReport) (costreport.Kept, *report.Numbers, error) {
	var s keptSummary
	if err := json.Unmarshal([]byte(r.Summary), &s); err != nil {
		return costreport.Kept{}, nil, fmt.Errorf("read the summary of report %s until %s: %w", r.Name, r.To.Format(time.RFC3339), err)
	}
	return costreport.Kept{
		From: r.From, To: r.To, Revision: int32(r.Revision), MadeAt: r.MadeAt, Asked: s.Asked, Summary: s.ReportSummary,
	}, s.Numbers, nil
}

// observeLists reads the price list and the directory.
func (r *Reconciler) observeLists(ctx context.Context, v *view) error {
	if err := r.observeDirectory(ctx, v); err != nil {
		return err
	}
	spec := &v.report.Spec
	text, missing, err := r.readList(ctx, spec.PriceListRef.Name, pricesKey)
	switch {
	case err != nil:
		return err
	case missing != "":
		v.observed.Obstacle = &costreport.Obstacle{Reason: v1beta1.ReasonPriceListNotFound, Stalled: true,
			Message: "spec.priceListRef: " + missing}
		return nil
	}
	if v.prices, err = cost.ParsePrices([]byte(text)); err != nil {
		v.observed.Obstacle = &costreport.Obstacle{Reason: v1beta1.ReasonInvalidPriceList, Stalled: true, Message: fmt.Sprintf(
			"ConfigMap %s, key %s: %v.", spec.PriceListRef.Name, pricesKey, err)}
	}
	return nil
}

// observeDirectory reads the directory, which says who gets mails.
func (r *Reconciler) observeDirectory(ctx context.Context, v *view) error {
	ref := v.report.Spec.DirectoryRef
	if ref == nil {
		return nil
	}
	text, missing, err := r.readList(ctx, ref.Name, peopleKey)
	if err != nil {
		return err
	}
	obstacle := &costreport.Obstacle{
		Reason: v1beta1.ReasonInvalidDirectory, Stalled: true, Message: "spec.directoryRef: " + missing,
	}
	if missing == "" {
		if v.people, v.observed.Directory, err = mail.ParseDirectory([]byte(text)); err == nil {
			return nil
		}
		obstacle.Message = fmt.Sprintf("ConfigMap %s, key %s: %v.", ref.Name, peopleKey, err)
	}
	v.observed.Obstacle, v.observed.MailUnknown = obstacle, true
	return nil
}

// readList reads a key of a ConfigMap in the operator's namespace. missing is a message for users if there is no such key.
func (r *Reconciler) readList(ctx context.Context, name, key string) (text, missing string, err error) {
	object := &corev1.ConfigMap{}
	err = r.live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return "", fmt.Sprintf("there is no ConfigMap %s in namespace %s: create it, with key %s.", name, r.Namespace, key), nil
	}
	if err != nil {
		return "", "", fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	text, there := object.Data[key]
	if !there {
		return "", fmt.Sprintf("ConfigMap %s in namespace %s has no key %s: add it.", name, r.Namespace, key), nil
	}
	return text, "", nil
}

// observeMails finds who is to get the last report, and what became of the mail of each.
func (r *Reconciler) observeMails(ctx context.Context, v *view) error {
	wanted := v.report.Spec.Mail
	if wanted == nil || len(v.kept) == 0 || costreport.IsOutdated(v.report, v.kept[0].To) {
		return nil
	}
	last := &v.kept[0]
	var users []string
	if wanted.Personal {
		var err error
		if v.computed, err = r.readData(ctx, v, last); err != nil {
			return err
		}
		for i := range v.computed.By[cost.ByUser] {
			users = append(users, v.computed.By[cost.ByUser][i].Key.User)
		}
	}
	deliveries, err := v.ledger.QueryDeliveries(ctx, string(v.report.UID), last.To)
	if err != nil {
		return err
	}
	recipients, missing, bad := mail.ResolveRecipients(wanted.To, wanted.Personal, users, v.people)
	m := &costreport.Mails{Bad: bad, Missing: len(missing), Round: delivery.Round{
		Report: string(v.report.UID), Period: last.To, Next: costreport.MailedUntil(&v.report.Spec, &v.observed.Kept[0]),
		Recipients: recipients, Deliveries: deliveries, Again: mailAgainAt(v.report),
		Retry: config.Seconds(r.config.Reports.MailRetrySeconds),
	}}
	if !m.Round.IsSettled() {
		if v.server, m.Problem, err = r.readServer(ctx, wanted.SMTPSecretRef.Name); err != nil {
			return err
		}
	}
	v.observed.Mails = m
	return nil
}

// mailAgainAt is when a user asked for mails to be sent again whose arrival is unknown.
func mailAgainAt(object *v1beta1.CostReport) time.Time {
	at, err := time.Parse(time.RFC3339, object.Annotations[v1beta1.AnnotationMailAgain])
	if err != nil {
		return time.Time{}
	}
	return at
}

// readServer reads the mail server's settings. problem is a message for users about the Secret.
func (r *Reconciler) readServer(ctx context.Context, name string) (s mail.Server, problem string, err error) {
	data, problem, err := r.readSecret(ctx, name)
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

// readSecret reads the mail server's Secret. missing is a message for users if it does not exist or has another type.
func (r *Reconciler) readSecret(ctx context.Context, name string) (data map[string][]byte, missing string, err error) {
	object := &corev1.Secret{}
	err = r.live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("There is no Secret %s in namespace %s: create it, of type %s.", name, r.Namespace, smtpType), nil
	case err != nil:
		return nil, "", fmt.Errorf("read Secret %s: %w", name, err)
	case object.Type != smtpType:
		return nil, fmt.Sprintf("Secret %s in namespace %s does not have type %s, which is required. Create it again with that "+
			"type.", name,
			r.Namespace, smtpType), nil
	}
	return object.Data, "", nil
}
