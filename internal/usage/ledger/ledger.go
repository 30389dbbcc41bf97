// Package ledger is the record of what ran, how long and how large, and of what was decided. It is only added to, what is
// recorded twice counts once, and totals of any range of time come from it in less than a second. It is kept in SQLite or
// PostgreSQL, and knows nothing of Kubernetes.
package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"
)

const (
	// pause is between two tries to get a lock.
	pause = 10 * time.Millisecond
	// readers is how many questions are answered at the same time.
	readers = 4

	opening       = "open the ledger"
	openingToRead = "open the ledger to read it"
)

// errTwoPlaces is for options that name no database, or two.
var errTwoPlaces = problemf(ErrInvalid, "set either the file or the PostgreSQL DSN")

// Options say where a ledger is kept: one of both.
type Options struct {
	// File of a SQLite database, created if there is none, readable by its owner only. Beside it are -wal and -shm, which belong to
	// it as long as it is open. On a network's file system its locks may not hold.
	File string
	// PostgresDSN of a PostgreSQL database, or a schema in it (search_path), of the ledger's own: a URL or key=value pairs, as
	// libpq reads them, and what they leave out from the environment.
	PostgresDSN string
	// Clock says when a ledger begins that is made here; nil for the machine's.
	Clock func() time.Time
}

// Ledger is an open ledger. Its methods may be called side by side; they write one after the other, and each ends with its
// context. One that [OpenToRead] opened refuses to write, with ErrInvalid. Their errors are ErrUnavailable, ErrUnusable or
// ErrInvalid, or wrap context.Canceled; few others are none of these.
type Ledger struct {
	kind database
	// writer is nil for one that only reads.
	writer *sql.DB
	reader *sql.DB
	// clock says when what is made begins.
	clock func() time.Time
}

// database is what SQLite and PostgreSQL differ in, besides how they are opened.
type database struct {
	name string
	// lock is the statement that makes a transaction wait for those that write; empty if to begin does.
	lock string
	// parameters is how many a statement has at most. Fewer are better where each is looked up by walking through all of them,
	// more where each statement is a way to a server and back.
	parameters int
	// versionTables is the question how many tables there are that say the version: 0 or 1.
	versionTables string
	// clustered ends the statement that creates a table in the order of its key.
	clustered string
	// patience is how long a transaction tries to begin while another's lock is in its way, for which locked holds; nil where to
	// begin needs none.
	patience time.Duration
	locked   func(error) bool
	// explain says what an error is, in words for users, and as one of the sentinel errors or nil.
	explain func(error) (said string, kind error)
}

// Open opens a ledger, and creates its tables or brings them up to date. A database of a newer version is refused with
// ErrUnusable, and left as it is.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	kind, writer, reader, err := connectDatabase(o)
	if err != nil {
		return nil, explainError(ctx, kind, opening, err)
	}
	clock := o.Clock
	if clock == nil {
		clock = time.Now
	}
	return openLedger(ctx, kind, writer, reader, schema{migrations, clock})
}

func connectDatabase(o Options) (kind database, writer, reader driver.Connector, err error) {
	switch {
	case (o.File == "") == (o.PostgresDSN == ""):
		return database{}, nil, nil, errTwoPlaces
	case o.File != "":
		return connectSQLite(o.File)
	}
	kind, writer, err = connectPostgres(o.PostgresDSN)
	return kind, writer, writer, err
}

// openLedger makes a ledger of what connects to a database, with the tables of a schema.
func openLedger(ctx context.Context, kind database, writer, reader driver.Connector, tables schema) (*Ledger, error) {
	l := &Ledger{kind: kind, writer: sql.OpenDB(writer), reader: sql.OpenDB(reader), clock: tables.clock}
	l.writer.SetMaxOpenConns(1)
	l.reader.SetMaxOpenConns(readers)
	err := l.writeTransaction(ctx, opening, tables.migrate)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// OpenToRead opens a ledger that is there, to read what it has. It creates and migrates nothing, and waits for nobody who writes.
// A database that is not of this version is refused: one of an older version, or without any, with ErrBehind, because whoever
// writes there brings it up to date, and one of a newer version with ErrUnusable.
func OpenToRead(ctx context.Context, o Options) (*Ledger, error) {
	kind, reader, err := connectReader(o)
	if err != nil {
		return nil, explainError(ctx, kind, openingToRead, err)
	}
	l := &Ledger{kind: kind, reader: sql.OpenDB(reader), clock: time.Now}
	l.reader.SetMaxOpenConns(readers)
	if err := l.readTransaction(ctx, openingToRead, checkVersion); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func connectReader(o Options) (database, driver.Connector, error) {
	switch {
	case (o.File == "") == (o.PostgresDSN == ""):
		return database{}, nil, errTwoPlaces
	case o.File != "":
		return connectSQLiteReader(o.File)
	}
	return connectPostgres(o.PostgresDSN)
}

// Close ends what still runs and closes the database.
func (l *Ledger) Close() error {
	if l.writer == nil {
		return l.reader.Close()
	}
	return errors.Join(l.reader.Close(), l.writer.Close())
}

// writeTransaction runs a transaction. No other writes come between its statements.
func (l *Ledger) writeTransaction(ctx context.Context, doing string, do func(context.Context, transaction) error) error {
	if l.writer == nil {
		return l.explainFailure(ctx, doing, problemf(ErrInvalid, "it was opened to be read"))
	}
	tx, err := l.beginTransaction(ctx)
	if err != nil {
		return l.explainFailure(ctx, doing, err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if l.kind.lock != "" {
		if _, err := tx.ExecContext(ctx, l.kind.lock); err != nil {
			return l.explainFailure(ctx, doing, err)
		}
	}
	if err := do(ctx, transaction{tx, l.kind}); err != nil {
		return l.explainFailure(ctx, doing, err)
	}
	return l.explainFailure(ctx, doing, tx.Commit())
}

// beginTransaction waits for locks here and not in SQLite, which would not hear that the context has ended.
func (l *Ledger) beginTransaction(ctx context.Context) (*sql.Tx, error) {
	enough := time.NewTimer(l.kind.patience)
	defer enough.Stop()
	for {
		tx, err := l.writer.BeginTx(ctx, nil)
		if err == nil {
			return tx, nil
		}
		if l.kind.locked == nil || !l.kind.locked(err) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-enough.C:
			return nil, err
		case <-time.After(pause):
		}
	}
}

// readTransaction runs a transaction that sees one state of the database.
func (l *Ledger) readTransaction(ctx context.Context, doing string, do func(context.Context, transaction) error) error {
	tx, err := l.reader.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return l.explainFailure(ctx, doing, err)
	}
	defer func() { _ = tx.Rollback() }()
	return l.explainFailure(ctx, doing, do(ctx, transaction{tx, l.kind}))
}
