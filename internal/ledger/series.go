package ledger

import (
	"context"
	"slices"
	"strings"
)

// series is who answers for pods: what totals are grouped by.
type series struct {
	namespace, profile, queue, user, tier, kind, task, role, model string
}

func seriesOf(p Pod) series {
	return series{
		clean(p.Namespace), clean(p.Profile), clean(p.Queue), clean(p.User), clean(p.Tier), clean(p.Kind), clean(p.Task), clean(p.Role),
		clean(p.Model),
	}
}

// seriesNames are the columns of a series, in the order of its fields.
var seriesNames = []string{"namespace", "profile", "queue", "user_name", "tier", "kind", "task", "role", "model"}

// seriesColumns are the columns of a table.
func seriesColumns(table string) string { return table + strings.Join(seriesNames, ", "+table) }

// fields are where the columns are read to.
func (s *series) fields() []any {
	return []any{&s.namespace, &s.profile, &s.queue, &s.user, &s.tier, &s.kind, &s.task, &s.role, &s.model}
}

func (s *series) values() []string {
	return []string{s.namespace, s.profile, s.queue, s.user, s.tier, s.kind, s.task, s.role, s.model}
}

func (s *series) describe(p *Pod) {
	p.Namespace, p.Profile, p.Queue, p.User, p.Tier, p.Kind, p.Task, p.Role, p.Model =
		s.namespace, s.profile, s.queue, s.user, s.tier, s.kind, s.task, s.role, s.model
}

// seriesIDs finds the ids of the series of stays, and adds those that are new. They are known by a digest, because a user's name
// may be longer than what PostgreSQL indexes.
func seriesIDs(ctx context.Context, tx transaction, stays []Stay) (map[series]int64, error) {
	digests := map[string]series{}
	ids := map[series]int64{}
	var all []string
	for i := range stays {
		s := seriesOf(stays[i].Pod)
		if _, known := ids[s]; known {
			continue
		}
		ids[s] = 0
		d := digest(s.values()...)
		digests[d] = s
		all = append(all, d)
	}
	err := tx.eachOf(ctx, "SELECT digest, id FROM series WHERE digest IN %s", all, func(scan func(...any) error) error {
		var d string
		var id int64
		err := scan(&d, &id)
		ids[digests[d]] = id
		return err
	})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(d string) bool { return ids[digests[d]] != 0 })
	if len(all) == 0 {
		return ids, nil
	}
	var last int64
	if err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(id), 0) FROM series").Scan(&last); err != nil {
		return nil, err
	}
	rows := make([][]any, len(all))
	for i, d := range all {
		s := digests[d]
		last++
		ids[s] = last
		rows[i] = []any{last, d}
		for _, value := range s.values() {
			rows[i] = append(rows[i], value)
		}
	}
	return ids, tx.insert(ctx, "INSERT INTO series (id, digest, "+seriesColumns("")+")", rows, "")
}
