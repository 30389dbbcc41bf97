package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// transaction is one of database/sql's, with what its statements must heed.
type transaction struct {
	*sql.Tx
	database
}

// eachRow hands out the rows of a question.
func (t transaction) eachRow(ctx context.Context, question string, args []any, row func(scan func(...any) error) error) error {
	rows, err := t.QueryContext(ctx, question, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// eachOf hands out the rows of a question about many values, which stand where the question has %s.
func eachOf[T any](
	ctx context.Context, t transaction, question string, values []T, row func(scan func(...any) error) error,
) error {
	for len(values) > 0 {
		n := min(len(values), t.parameters)
		args := make([]any, n)
		for i, value := range values[:n] {
			args[i] = value
		}
		if err := t.eachRow(ctx, fmt.Sprintf(question, parameterList(1, n)), args, row); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}

// insertRows inserts rows, many with one statement: head, the rows' values, tail.
func (t transaction) insertRows(ctx context.Context, head string, rows [][]any, tail string) error {
	for len(rows) > 0 {
		n := min(len(rows), max(t.parameters/len(rows[0]), 1))
		if _, err := t.ExecContext(ctx, head+rowParameters(n, len(rows[0]))+tail, slices.Concat(rows[:n]...)...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// parameterList are n parameters in brackets, the first one with a number. Both databases read $1.
func parameterList(first, n int) string {
	b := []byte{'('}
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, '$'), int64(first+i), 10)
	}
	return string(append(b, ')'))
}

func rowParameters(rows, columns int) string {
	each := make([]string, rows)
	for i := range each {
		each[i] = parameterList(1+i*columns, columns)
	}
	return " VALUES " + strings.Join(each, ",")
}
