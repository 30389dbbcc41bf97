package ledger

import (
	"context"
	"strings"
)

// series is the owner of pods: the fields by which totals are grouped.
type series struct {
	namespace, profile, queue, user, tier, kind, task, role, model string
}

func seriesOf(p Pod) series {
	return series{
		cleanText(p.Namespace), cleanText(p.Profile), cleanText(p.Queue), cleanText(p.User), cleanText(p.Tier), cleanText(p.Kind),
		cleanText(p.Task), cleanText(p.Role),
		cleanText(p.Model),
	}
}

// seriesNames are the columns of a series, in the order of its fields.
var seriesNames = []string{"namespace", "profile", "queue", "user_name", "tier", "kind", "task", "role", "model"}

// seriesColumns are the columns of table s.
var seriesColumns = "s." + strings.Join(seriesNames, ", s.")

// scanTargets are where the columns are read to.
func (s *series) scanTargets() []any {
	return []any{&s.namespace, &s.profile, &s.queue, &s.user, &s.tier, &s.kind, &s.task, &s.role, &s.model}
}

func (s *series) columnValues() []string {
	return []string{s.namespace, s.profile, s.queue, s.user, s.tier, s.kind, s.task, s.role, s.model}
}

func (s *series) describePod(p *Pod) {
	p.Namespace, p.Profile, p.Queue, p.User, p.Tier, p.Kind, p.Task, p.Role, p.Model =
		s.namespace, s.profile, s.queue, s.user, s.tier, s.kind, s.task, s.role, s.model
}

// seriesIDs finds the ids of the series of stays, and adds those that are new.
func seriesIDs(ctx context.Context, tx transaction, stays []Stay) (map[series]int64, error) {
	all := make([]series, len(stays))
	for i := range stays {
		all[i] = seriesOf(stays[i].Pod)
	}
	return names[series]{"series", seriesNames, func(s series) []string { return s.columnValues() }}.ensureIDs(ctx, tx, all)
}
