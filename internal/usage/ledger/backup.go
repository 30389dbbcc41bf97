package ledger

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	backingUp, restoring = "back up the ledger", "restore the ledger"
	// backupRows is how many rows are read from a backup before they are inserted.
	backupRows = 500
)

// tables are those with what the ledger has, of version beginVersion and later. A backup of an older one lacks those that came
// since.
var tables = []string{
	"series", "pod_day", "task_day", "decision", "part", "part_day", "collected_day", "oom_kill", "delivery", "report",
	"report_file", "room", "ledger_begin", "training", "training_day",
}

// Lines of a backup, which is JSON by lines, in gzip: one head, then for each table its name and columns and one line for each
// row, and a tail, without which the backup is not whole.
type (
	backupHead struct {
		// Version is that of the tables.
		Version int `json:"tidelineLedger"`
	}
	backupLine struct {
		Table   string   `json:"table,omitempty"`
		Columns []string `json:"columns,omitempty"`
		// Rows is how many rows the backup has, in its last line.
		Rows *int64 `json:"rows,omitempty"`
	}
)

// WriteBackup writes all that the ledger has to w, as it is at one moment, while others go on to write, and says how many rows
// that is. Any ledger, of SQLite or PostgreSQL, can be restored from it. It keeps no more than a row in memory.
func (l *Ledger) WriteBackup(ctx context.Context, w io.Writer) (rows int64, err error) {
	err = l.readTransaction(ctx, backingUp, func(ctx context.Context, tx transaction) error {
		packed := gzip.NewWriter(w)
		lines := json.NewEncoder(packed)
		lines.SetEscapeHTML(false)
		write := func(line any) error {
			if err := lines.Encode(line); err != nil {
				return writeError{err}
			}
			return nil
		}
		if err := write(backupHead{len(migrations)}); err != nil {
			return err
		}
		for _, table := range tables {
			n, err := backUpTable(ctx, tx, table, write)
			if err != nil {
				return err
			}
			rows += n
		}
		if err := write(backupLine{Rows: &rows}); err != nil {
			return err
		}
		if err := packed.Close(); err != nil {
			return writeError{err}
		}
		return nil
	})
	return rows, err
}

// backUpTable writes a table, and returns how many rows it has.
func backUpTable(ctx context.Context, tx transaction, table string, write func(any) error) (n int64, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+table)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	if err := write(backupLine{Table: table, Columns: columns}); err != nil {
		return 0, err
	}
	row, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	for ; rows.Next(); n++ {
		if err := rows.Scan(into...); err != nil {
			return 0, err
		}
		if err := write(row); err != nil {
			return 0, err
		}
	}
	return n, rows.Err()
}

// Restore puts a backup in place of what the ledger has, all of it or, if anything is wrong, nothing, and says how many rows it
// had. Unless replace is true, a ledger that has entries is refused with ErrNotEmpty, and left as it is; with ErrInvalid, what is
// no whole backup, or one of a newer version. Others may write meanwhile: what they record waits until the end.
func (l *Ledger) Restore(ctx context.Context, r io.Reader, replace bool) (rows int64, err error) {
	err = l.writeTransaction(ctx, restoring, func(ctx context.Context, tx transaction) error {
		if err := checkReplaceable(ctx, tx, replace); err != nil {
			return err
		}
		b, err := openBackup(r)
		if err != nil {
			return err
		}
		for _, table := range append(slices.Clone(tables), "ledger_version") {
			if _, err := tx.ExecContext(ctx, "DROP TABLE IF EXISTS "+table); err != nil {
				return err
			}
		}
		// Into tables as they were, which are then brought up to date like those of an older operator.
		if err := (schema{migrations[:b.version], l.clock}).migrate(ctx, tx); err != nil {
			return err
		}
		if rows, err = b.load(ctx, tx); err != nil {
			return err
		}
		return schema{migrations, l.clock}.migrate(ctx, tx)
	})
	return rows, err
}

// checkReplaceable refuses a ledger that has entries, unless they may go.
func checkReplaceable(ctx context.Context, tx transaction, replace bool) error {
	if replace {
		return nil
	}
	for _, table := range tables {
		var n int64
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
			return err
		}
		if n > 0 && table != "ledger_begin" {
			return ErrNotEmpty
		}
	}
	return nil
}

// backup is one that is being read.
type backup struct {
	version int
	packed  *gzip.Reader
	lines   *bufio.Reader
}

// openBackup reads the head.
func openBackup(r io.Reader) (*backup, error) {
	packed, err := gzip.NewReader(r)
	if err != nil {
		return nil, noBackup(err)
	}
	b := &backup{packed: packed, lines: bufio.NewReader(packed)}
	var head backupHead
	if err := b.read(&head); err != nil {
		return nil, err
	}
	switch b.version = head.Version; {
	case b.version < beginVersion:
		return nil, noBackup(errors.New("its first line has no version"))
	case b.version > len(migrations):
		return nil, problemf(ErrInvalid, "the backup is of version %d, and this program knows none after %d: restore it with the "+
			"version of Tideline that wrote it, or a newer one", b.version, len(migrations))
	}
	return b, nil
}

func noBackup(why error) error {
	if errors.Is(why, io.EOF) || errors.Is(why, io.ErrUnexpectedEOF) {
		return problemf(ErrInvalid, "the backup ends too early: make another one")
	}
	return problemf(ErrInvalid, "this is no backup of a ledger, or it is damaged: %v", why)
}

// read reads a line into what it is.
func (b *backup) read(into any) error {
	line, err := b.lines.ReadBytes('\n')
	if err != nil {
		return noBackup(err)
	}
	return decodeLine(line, into)
}

func decodeLine(line []byte, into any) error {
	decoder := json.NewDecoder(strings.NewReader(string(line)))
	decoder.UseNumber() // numbers of 64 bits stay what they are
	if err := decoder.Decode(into); err != nil {
		return noBackup(err)
	}
	return nil
}

// load inserts the rows of all tables, and returns how many there are.
func (b *backup) load(ctx context.Context, tx transaction) (n int64, err error) {
	// The new tables begin now; the backup says when the ledger did.
	if _, err := tx.ExecContext(ctx, "DELETE FROM ledger_begin"); err != nil {
		return 0, err
	}
	into := "" // the table, and its columns
	var rows [][]any
	flush := func() error {
		defer func() { rows = nil }()
		return tx.insertRows(ctx, into, rows, "")
	}
	columns := 0
	for {
		line, err := b.lines.ReadBytes('\n')
		if err != nil {
			return 0, noBackup(err)
		}
		if line[0] == '[' {
			row, err := rowOf(line, columns)
			if err != nil {
				return 0, err
			}
			rows = append(rows, row)
			if n++; len(rows) == backupRows {
				if err := flush(); err != nil {
					return 0, err
				}
			}
			continue
		}
		if err := flush(); err != nil {
			return 0, err
		}
		var next backupLine
		if err := decodeLine(line, &next); err != nil {
			return 0, err
		}
		if next.Rows != nil {
			return n, b.end(n, *next.Rows)
		}
		if into, err = insertInto(ctx, tx, next); err != nil {
			return 0, err
		}
		columns = len(next.Columns)
	}
}

// end reads to the end, where gzip has a sum of all that came before.
func (b *backup) end(found, said int64) error {
	if found != said {
		return problemf(ErrInvalid, "the backup has %d rows and should have %d: make another one", found, said)
	}
	if _, err := io.Copy(io.Discard, b.lines); err != nil {
		return noBackup(err)
	}
	return nil
}

// insertInto begins the statement that inserts rows, of a table and columns that there are.
func insertInto(ctx context.Context, tx transaction, l backupLine) (string, error) {
	if !slices.Contains(tables, l.Table) {
		return "", noBackup(fmt.Errorf("it has a table %.40q", l.Table))
	}
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+l.Table+" WHERE 1 = 0")
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	there, err := rows.Columns()
	if err != nil {
		return "", err
	}
	if !slices.Equal(slices.Sorted(slices.Values(there)), slices.Sorted(slices.Values(l.Columns))) {
		return "", noBackup(fmt.Errorf("table %s has other columns", l.Table))
	}
	return "INSERT INTO " + l.Table + " (" + strings.Join(l.Columns, ", ") + ")", rows.Err()
}

// rowOf reads the values of a row: texts and numbers.
func rowOf(line []byte, columns int) ([]any, error) {
	var row []any
	if err := decodeLine(line, &row); err != nil {
		return nil, err
	}
	if len(row) != columns || columns == 0 {
		return nil, noBackup(errors.New("a row has another number of columns"))
	}
	for i, value := range row {
		switch v := value.(type) {
		case string:
		case json.Number:
			if whole, err := v.Int64(); err == nil {
				row[i] = whole
			} else if row[i], err = v.Float64(); err != nil {
				return nil, noBackup(err)
			}
		default:
			return nil, noBackup(fmt.Errorf("a row has a value of type %T", value))
		}
	}
	return row, nil
}
