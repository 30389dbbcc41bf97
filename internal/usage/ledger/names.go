package ledger

import (
	"context"
	"slices"
	"strings"
)

// names is a table of texts to which other tables refer by a number. There are few of them, so they are written once.
type names[K comparable] struct {
	table   string
	columns []string
	// values are those of the columns.
	values func(K) []string
}

// ensureIDs finds the ids of names, and adds those that are new. They are known by a digest, because what a user writes may
// be longer than what PostgreSQL indexes.
func (n names[K]) ensureIDs(ctx context.Context, tx transaction, keys []K) (map[K]int64, error) {
	ids, known := make(map[K]int64, len(keys)), map[string]K{}
	var missing []string
	for _, key := range keys {
		if _, seen := ids[key]; seen {
			continue
		}
		ids[key] = 0
		d := digest(n.values(key)...)
		known[d] = key
		missing = append(missing, d)
	}
	err := eachOf(ctx, tx, "SELECT digest, id FROM "+n.table+" WHERE digest IN %s", missing, func(scan func(...any) error) error {
		var d string
		var id int64
		err := scan(&d, &id)
		ids[known[d]] = id
		return err
	})
	if err != nil {
		return nil, err
	}
	missing = slices.DeleteFunc(missing, func(d string) bool { return ids[known[d]] != 0 })
	if len(missing) == 0 {
		return ids, nil
	}
	// No other writer takes these ids: transactions that write take turns.
	var last int64
	if err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(id), 0) FROM "+n.table).Scan(&last); err != nil {
		return nil, err
	}
	rows := make([][]any, len(missing))
	for i, d := range missing {
		key := known[d]
		last++
		ids[key] = last
		rows[i] = []any{last, d}
		for _, value := range n.values(key) {
			rows[i] = append(rows[i], value)
		}
	}
	return ids, tx.insertRows(ctx, "INSERT INTO "+n.table+" (id, digest, "+strings.Join(n.columns, ", ")+")", rows, "")
}
