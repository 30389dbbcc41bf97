package ledger

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Field is what totals are grouped and chosen by.
type Field string

const (
	Namespace Field = "namespace"
	Profile   Field = "profile"
	Queue     Field = "queue"
	User      Field = "user"
	Tier      Field = "tier"
	Kind      Field = "kind"
	Task      Field = "task"
	Role      Field = "role"
	Model     Field = "model"
	// Resource is always told apart: amounts of two resources have no sum.
	Resource Field = "resource"
	// Day in UTC, as 2006-01-02. It is grouped by only: days are chosen by time.
	Day Field = "day"
)

// fieldColumns are the columns of fields of series. No other name becomes a part of a statement.
var fieldColumns = map[Field]string{
	Namespace: "s.namespace", Profile: "s.profile", Queue: "s.queue", User: "s.user_name", Tier: "s.tier", Kind: "s.kind",
	Task: "s.task", Role: "s.role", Model: "s.model",
}

// Query asks for totals.
type Query struct {
	// From and To are the range of time, To excluded, in whole seconds. Of pods that were there before or after, the part inside
	// counts.
	From, To time.Time
	// Where maps fields to their allowed values. A field that is not in it may have any value.
	Where map[Field][]string
	// GroupBy are the fields by which totals are told apart; none for one total of each resource.
	GroupBy []Field
}

// Total is what a group had of a resource.
type Total struct {
	// Group are the values of Query.GroupBy, in its order.
	Group []string
	// Resource, whose unit is that of Resources.
	Resource string
	// AmountSeconds is the sum of amount × seconds.
	AmountSeconds int64
	// PodSeconds is for how long pods held any of it, summed over pods.
	PodSeconds int64
	// UncertainSeconds is the part of PodSeconds that is of days on which a pod ended at a guess.
	UncertainSeconds int64
}

// QueryUsage returns totals, in the order of their groups and resources. Groups that used nothing are not among them. Whole
// days come from their sums and take no longer for more pods; the days in which the range begins and ends from the time of each
// pod.
func (l *Ledger) QueryUsage(ctx context.Context, q Query) ([]Total, error) {
	const doing = "read usage from the ledger"
	if err := q.check(); err != nil {
		return nil, l.explainFailure(ctx, doing, err)
	}
	whole, partial := q.splitRange()
	sums := totals{}
	err := l.readTransaction(ctx, doing, func(ctx context.Context, tx transaction) error {
		if whole.begin < whole.end {
			if err := q.wholeDays(ctx, tx, whole, sums); err != nil {
				return err
			}
		}
		parsed := parser{}
		for _, part := range partial {
			if err := q.partOfDay(ctx, tx, part, parsed, sums); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sums.sortedList(), nil
}

func (q Query) check() error {
	for _, field := range q.GroupBy {
		if _, ok := fieldColumns[field]; !ok && field != Resource && field != Day {
			return problemf(ErrInvalid, "there is no field %q to group by", field)
		}
	}
	for field := range q.Where {
		if _, ok := fieldColumns[field]; !ok && field != Resource {
			return problemf(ErrInvalid, "there is no field %q to choose by", field)
		}
	}
	if q.From.Before(time.Unix(0, 0)) || q.To.Before(time.Unix(0, 0)) {
		return problemf(ErrInvalid, "the range of time is not set")
	}
	return nil
}

// splitRange cuts the range into whole days, from day begin until before day end, and at most two parts of days.
func (q Query) splitRange() (whole span, partial []span) {
	from, to := q.From.Unix(), q.To.Unix()
	if to <= from {
		return span{}, nil
	}
	whole = span{begin: (from + secondsOfDay - 1) / secondsOfDay, end: to / secondsOfDay}
	if whole.begin > whole.end {
		return span{}, []span{{to / secondsOfDay, from, to}}
	}
	if midnight := whole.begin * secondsOfDay; from < midnight {
		partial = append(partial, span{whole.begin - 1, from, midnight})
	}
	if midnight := whole.end * secondsOfDay; midnight < to {
		partial = append(partial, span{whole.end, midnight, to})
	}
	return whole, partial
}

// whereClause is the condition of Where, behind conditions with n parameters. Resources are chosen by the column, or not here.
func (q Query) whereClause(n int, resource string) (condition string, args []any) {
	var b strings.Builder
	for _, field := range slices.Sorted(maps.Keys(q.Where)) {
		column := fieldColumns[field]
		if field == Resource {
			column = resource
		}
		switch values := q.Where[field]; {
		case column == "":
		case len(values) == 0:
			b.WriteString(" AND 1 = 0")
		default:
			fmt.Fprintf(&b, " AND %s IN %s", column, parameterList(n+len(args)+1, len(values)))
			for _, value := range values {
				args = append(args, cleanText(value))
			}
		}
	}
	return b.String(), args
}

// groupColumns are the columns to group by: those of series, and others.
func (q Query) groupColumns(others ...string) string {
	columns := others
	for _, field := range q.GroupBy {
		if column := fieldColumns[field]; column != "" {
			columns = append(columns, column)
		}
	}
	return strings.Join(columns, ", ")
}

// groupValues puts together the values of GroupBy from those of its columns.
func (q Query) groupValues(columns []string, day int64, resource string) []string {
	group := make([]string, len(q.GroupBy))
	next := 0
	for i, field := range q.GroupBy {
		switch field {
		case Day:
			group[i] = dayText(day)
		case Resource:
			group[i] = resource
		default:
			group[i] = columns[next]
			next++
		}
	}
	return group
}

// scanColumns are where the values of columns of series are read to.
func (q Query) scanColumns() (values []string, into []any) {
	for _, field := range q.GroupBy {
		if fieldColumns[field] != "" {
			values = append(values, "")
		}
	}
	for i := range values {
		into = append(into, &values[i])
	}
	return values, into
}

func (q Query) wholeDays(ctx context.Context, tx transaction, whole span, into totals) error {
	condition, args := q.whereClause(2, "t.resource")
	// The many rows are summed by numbers, before the few sums are told apart by texts; by day there would be as many.
	others, sums := []string{"t.resource"}, `SELECT series, resource, SUM(amount_seconds) AS amount_seconds,
			SUM(pod_seconds) AS pod_seconds, SUM(uncertain_seconds) AS uncertain_seconds
		FROM task_day WHERE day >= $1 AND day < $2 GROUP BY series, resource`
	if slices.Contains(q.GroupBy, Day) {
		others, sums = append(others, "t.day"), "SELECT * FROM task_day WHERE day >= $1 AND day < $2"
	}
	values, columns := q.scanColumns()
	var t Total
	var day int64
	read := []any{&t.Resource}
	if len(others) > 1 {
		read = append(read, &day)
	}
	read = append(append(read, columns...), &t.AmountSeconds, &t.PodSeconds, &t.UncertainSeconds)
	by := q.groupColumns(others...)
	return tx.eachRow(ctx, "SELECT "+by+`, CAST(SUM(t.amount_seconds) AS BIGINT), CAST(SUM(t.pod_seconds) AS BIGINT),
			CAST(SUM(t.uncertain_seconds) AS BIGINT)
		FROM (`+sums+") t JOIN series s ON s.id = t.series WHERE 1 = 1"+condition+" GROUP BY "+by,
		append([]any{whole.begin, whole.end}, args...), func(scan func(...any) error) error {
			if err := scan(read...); err != nil {
				return err
			}
			into.add(q.groupValues(values, day, t.Resource), t)
			return nil
		})
}

func (q Query) partOfDay(ctx context.Context, tx transaction, part span, parsed parser, sums totals) error {
	condition, args := q.whereClause(3, "")
	values, into := q.scanColumns()
	var text string
	var podSeconds, uncertain int64
	read := append(append([]any{&text}, into...), &podSeconds, &uncertain)
	by := q.groupColumns("p.resources")
	return tx.eachRow(ctx, "SELECT "+by+", CAST(SUM("+secondsWithin+") AS BIGINT), CAST(SUM(p.uncertain * "+
		secondsWithin+`) AS BIGINT)
		FROM pod_day p JOIN series s ON s.id = p.series WHERE p.day = $1 AND p.begin_at < $2 AND p.end_at > $3`+condition+
		" GROUP BY "+by, append([]any{part.day, part.end, part.begin}, args...), func(scan func(...any) error) error {
		if err := scan(read...); err != nil {
			return err
		}
		resources, err := parsed.parseResources(text)
		if err != nil {
			return err
		}
		for resource, amount := range resources {
			if only, ok := q.Where[Resource]; ok && !slices.Contains(only, resource) {
				continue
			}
			sums.add(q.groupValues(values, part.day, resource), Total{
				Resource: resource, AmountSeconds: amount * podSeconds, PodSeconds: podSeconds, UncertainSeconds: uncertain,
			})
		}
		return nil
	})
}

// totals are those of groups, by the values of the group and the resource.
type totals map[string]Total

func (t totals) add(group []string, more Total) {
	key := strings.Join(group, "\x00") + "\x00" + more.Resource // no text in a database has the zero character
	sum := t[key]
	sum.Group, sum.Resource = group, more.Resource
	sum.AmountSeconds += more.AmountSeconds
	sum.PodSeconds += more.PodSeconds
	sum.UncertainSeconds += more.UncertainSeconds
	t[key] = sum
}

func (t totals) sortedList() []Total {
	list := slices.Collect(maps.Values(t))
	list = slices.DeleteFunc(list, func(t Total) bool { return t.PodSeconds == 0 })
	slices.SortFunc(list, func(a, b Total) int {
		return cmp.Or(slices.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return list
}

func dayText(day int64) string { return time.Unix(day*secondsOfDay, 0).UTC().Format(time.DateOnly) }
