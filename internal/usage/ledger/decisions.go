package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MostDecisions is how many decisions are returned if DecisionQuery has no limit, and at most.
const MostDecisions = 10_000

// DecisionQuery asks for decisions. A field that is empty leaves none out.
type DecisionQuery struct {
	// Namespace and Name of the object.
	Namespace, Name string
	// From and To are the range of time, To excluded.
	From, To time.Time
	// Kinds of decisions.
	Kinds []string
	// Limit is how many are returned at most, the newest; from 1 to MostDecisions, which is the default.
	Limit int
}

// content of a decision is what is not looked for.
type content struct {
	UID     string            `json:"uid,omitempty"`
	Attempt string            `json:"attempt,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Message string            `json:"message,omitempty"`
	Other   string            `json:"other,omitempty"`
	Figures map[string]string `json:"figures,omitempty"`
}

func recordDecisions(ctx context.Context, tx transaction, decisions []Decision) error {
	if len(decisions) == 0 {
		return nil
	}
	var seq int64
	if err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(seq), 0) FROM decision").Scan(&seq); err != nil {
		return err
	}
	rows := make([][]any, len(decisions))
	for i, d := range decisions {
		text, err := json.Marshal(content{d.UID, d.Attempt, d.Reason, d.Message, d.Other, d.Figures})
		if err != nil {
			return err
		}
		at, kind, namespace, name := d.At.UnixMicro(), cleanText(d.Kind), cleanText(d.Namespace), cleanText(d.Name)
		seq++
		known := digest(strconv.FormatInt(at, 10), kind, namespace, name, string(text))
		if d.ID != "" {
			known = digest(kind, namespace, name, cleanText(d.UID), cleanText(d.ID))
		}
		rows[i] = []any{seq, known, at, kind, namespace, name, string(text)}
	}
	return tx.insertRows(ctx, "INSERT INTO decision (seq, digest, at, kind, namespace, name, content)", rows,
		" ON CONFLICT (digest) DO NOTHING")
}

// QueryDecisions returns decisions, the newest last; of the same moment, in the order in which they were recorded.
func (l *Ledger) QueryDecisions(ctx context.Context, q DecisionQuery) ([]Decision, error) {
	statement, args := q.statement()
	limit := q.Limit
	if limit <= 0 || limit > MostDecisions {
		limit = MostDecisions
	}
	var found []Decision
	err := l.queryDecisions(ctx, statement+fmt.Sprintf(" ORDER BY at DESC, seq DESC LIMIT %d", limit), args, func(d *Decision) {
		found = append(found, *d)
	})
	slices.Reverse(found)
	return found, err
}

// EachDecision hands out decisions from the oldest to the newest, all of them: the limit plays no part. It keeps none.
func (l *Ledger) EachDecision(ctx context.Context, q DecisionQuery, each func(*Decision)) error {
	statement, args := q.statement()
	return l.queryDecisions(ctx, statement+" ORDER BY at, seq", args, each)
}

func (l *Ledger) queryDecisions(ctx context.Context, statement string, args []any, each func(*Decision)) error {
	return l.readTransaction(ctx, "read decisions from the ledger", func(ctx context.Context, tx transaction) error {
		return tx.eachRow(ctx, statement, args, func(scan func(...any) error) error {
			var d Decision
			var at int64
			var text string
			if err := scan(&at, &d.Kind, &d.Namespace, &d.Name, &text); err != nil {
				return err
			}
			var c content
			if err := json.Unmarshal([]byte(text), &c); err != nil {
				return problemf(ErrUnusable, "a decision is not what was written: restore a backup")
			}
			d.At = time.UnixMicro(at).UTC()
			d.UID, d.Attempt, d.Reason, d.Message, d.Other, d.Figures = c.UID, c.Attempt, c.Reason, c.Message, c.Other, c.Figures
			each(&d)
			return nil
		})
	})
}

// statement asks for decisions in no order.
func (q DecisionQuery) statement() (statement string, args []any) {
	var conditions []string
	where := func(condition string, value any) {
		args = append(args, value)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if q.Namespace != "" {
		where("namespace = $%d", cleanText(q.Namespace))
	}
	if q.Name != "" {
		where("name = $%d", cleanText(q.Name))
	}
	if !q.From.IsZero() {
		where("at >= $%d", q.From.UnixMicro())
	}
	if !q.To.IsZero() {
		where("at < $%d", q.To.UnixMicro())
	}
	if len(q.Kinds) > 0 {
		conditions = append(conditions, "kind IN "+parameterList(len(args)+1, len(q.Kinds)))
		for _, kind := range q.Kinds {
			args = append(args, cleanText(kind))
		}
	}
	statement = "SELECT at, kind, namespace, name, content FROM decision"
	if len(conditions) > 0 {
		statement += " WHERE " + strings.Join(conditions, " AND ")
	}
	return statement, args
}
