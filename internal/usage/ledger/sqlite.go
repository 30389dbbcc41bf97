package ledger

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// patience is how long another's lock is waited for, if the context does not end before.
const patience = 5 * time.Second

// pragmas are those of each connection, for how a statement waits for locks (ms), and a cache (KiB) that holds the indexes of a
// month. That a commit is on the disk (synchronous) costs a few milliseconds, and there is one in seconds. What is sorted stays
// in memory, because in the operator's container there may be no folder for temporary files.
var (
	pragmas        = append([]string{"journal_mode(WAL)", "synchronous(FULL)"}, readingPragmas...)
	readingPragmas = []string{"busy_timeout(100)", "cache_size(-32768)", "temp_store(MEMORY)"}
)

// describeSQLite is what is to be heeded of a file.
func describeSQLite(path string) database {
	return database{
		name: fmt.Sprintf("SQLite in %q", path), parameters: 98, // as many as the driver finds without allocating
		versionTables: "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'ledger_version'",
		clustered:     " WITHOUT ROWID", patience: patience, locked: lockedSQLite, explain: explainSQLite,
	}
}

// connectSQLiteReader makes what connects to a file that is there, and writes nothing to it.
func connectSQLiteReader(file string) (database, driver.Connector, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return database{}, nil, err
	}
	kind := describeSQLite(path)
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return kind, nil, behindf("it is not there yet")
	case err != nil:
		return kind, nil, problemf(ErrUnavailable, "%v: give the operator the right to read it", err)
	}
	address := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"mode": {"rw"}, "_pragma": append([]string{"query_only(1)"}, readingPragmas...), // a reader writes to -shm
	}.Encode()}
	reader, err := sqlite.NewConnector(address.String())
	return kind, reader, err
}

// connectSQLite makes what connects to a file, and the file if there is none.
func connectSQLite(file string) (kind database, writer, reader driver.Connector, err error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return database{}, nil, nil, err
	}
	kind = describeSQLite(path)
	// SQLite would create the file readable for every user. Its -wal and -shm files get the mode of the file.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return kind, nil, nil, problemf(ErrUnavailable, "%v: create the folder, and give the operator the right to write to it", err)
	}
	address := url.URL{Scheme: "file", Path: path}
	// To begin a transaction that writes is to take the lock: one that began by reading could not get it after another's write.
	address.RawQuery = url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}.Encode()
	if writer, err = sqlite.NewConnector(address.String()); err != nil {
		return kind, nil, nil, err
	}
	address.RawQuery = url.Values{"_pragma": append([]string{"query_only(1)"}, pragmas...)}.Encode()
	reader, err = sqlite.NewConnector(address.String())
	return kind, writer, reader, err
}

// lockedSQLite holds for errors that are gone when another process has written.
func lockedSQLite(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == sqlite3.SQLITE_BUSY || e.Code()&0xff == sqlite3.SQLITE_LOCKED)
}

// explainSQLite knows the result codes of https://www.sqlite.org/rescode.html.
func explainSQLite(err error) (said string, kind error) {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err.Error(), nil
	}
	if lockedSQLite(err) {
		return "it is locked by another process: see who has it open; it is tried again", ErrUnavailable
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return "its disk is full: make room; it is tried again", ErrUnavailable
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM:
		return fmt.Sprintf("it cannot be read or written (%s): see whether its disk is well and the operator may write there; it is "+
			"tried again", e), ErrUnavailable
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Sprintf("it is damaged, or no database (%s): put a backup in its place, or move it away with its -wal and -shm "+
			"and begin anew", e), ErrUnusable
	case sqlite3.SQLITE_ERROR:
		return fmt.Sprintf("it is not as this version left it (%s): put a backup in its place, or move it away with its -wal and "+
			"-shm and begin anew", e), ErrUnusable
	}
	return e.Error(), nil
}
