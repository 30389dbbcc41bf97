package ledger

import (
	"context"
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

// seriesColumns are the columns of table s.
var seriesColumns = "s." + strings.Join(seriesNames, ", s.")

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

// seriesIDs finds the ids of the series of stays, and adds those that are new.
func seriesIDs(ctx context.Context, tx transaction, stays []Stay) (map[series]int64, error) {
	all := make([]series, len(stays))
	for i := range stays {
		all[i] = seriesOf(stays[i].Pod)
	}
	return names[series]{"series", seriesNames, func(s series) []string { return s.values() }}.ids(ctx, tx, all)
}
