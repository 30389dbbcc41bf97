package ledger

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// connectTimeout is for servers that do not answer, if the DSN has no connect_timeout.
	connectTimeout = 5 * time.Second
	// writersLock is the advisory lock of those who write: "tideline" in ASCII.
	writersLock = 0x746964656c696e65
)

// connectPostgres makes what connects to a server.
func connectPostgres(dsn string) (database, driver.Connector, error) {
	kind := database{
		name: "PostgreSQL", parameters: 3000, explain: explainPostgres,
		versionTables: "SELECT COUNT(to_regclass('ledger_version'))",
		lock:          fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", int64(writersLock)),
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		// What is wrong with it cannot be said without quoting a part, which may be of a password that was not escaped.
		return kind, nil, problemf(ErrInvalid, "the DSN of PostgreSQL cannot be read: write postgres://user@host:5432/database, "+
			"with special characters of the password as %%40, or key=value pairs")
	}
	// Nothing is kept in the server's session between two statements, so that a pooler may stand between.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "tideline"
	}
	return kind, stdlib.GetConnector(*config), nil
}

// explainPostgres knows the codes of https://www.postgresql.org/docs/current/errcodes-appendix.html. Of what a server or the
// network says on the way to the database it repeats codes only: a password that is not escaped may have become a part of the
// name of a host, user or database.
func explainPostgres(err error) (said string, kind error) {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return explainAnswer(answer)
	}
	var connecting *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.As(err, &connecting), errors.As(err, &network), errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, pgconn.ErrConnClosed):
		return fmt.Sprintf("it cannot be reached (%s): see whether it is up, and whether host, port and TLS of the DSN are right; "+
			"it is tried again", whyNoAnswer(err)), ErrUnavailable
	}
	return err.Error(), nil
}

func explainAnswer(e *pgconn.PgError) (said string, kind error) {
	class := e.Code[:min(2, len(e.Code))]
	switch {
	case class == "28":
		return fmt.Sprintf("it does not accept the user or the password (SQLSTATE %s): correct the DSN, or let the user in; it is "+
			"tried again", e.Code), ErrUnavailable
	case class == "3D":
		return fmt.Sprintf("it has no such database (SQLSTATE %s): correct the DSN, or create it; it is tried again", e.Code),
			ErrUnavailable
	case e.Code == "25006":
		return "it only reads (SQLSTATE 25006): have the DSN lead to the server that writes; it is tried again", ErrUnavailable
	case e.Code == "42501":
		return "the user may not do what is needed (SQLSTATE 42501): let it create and write tables; it is tried again", ErrUnavailable
	case e.Code == "42P07":
		return fmt.Sprintf("it has tables of another program (%s): give the ledger its own database or schema", e.Message),
			ErrUnusable
	case class == "08", class == "40", class == "53", class == "55", class == "57", class == "58":
		return fmt.Sprintf("it is in trouble (%s, SQLSTATE %s): see its log; it is tried again", e.Message, e.Code), ErrUnavailable
	case class == "22":
		return fmt.Sprintf("it cannot compute or keep a value (%s, SQLSTATE %s)", e.Message, e.Code), ErrInvalid
	case class == "42", class == "3F", class == "XX":
		return fmt.Sprintf("it is damaged, or not as this version left it (%s, SQLSTATE %s): restore a backup, or give the ledger an "+
			"empty database", e.Message, e.Code), ErrUnusable
	}
	return fmt.Sprintf("%s (SQLSTATE %s)", e.Message, e.Code), nil
}

// whyNoAnswer says why there was no answer, without an address.
func whyNoAnswer(err error) string {
	var lookup *net.DNSError
	var operation *net.OpError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "no such host"
	case errors.As(err, &lookup):
		return "its name cannot be looked up"
	case errors.As(err, &operation) && operation.Timeout():
		return operation.Op + ": timed out"
	case errors.As(err, &operation):
		return operation.Op + ": " + operation.Err.Error()
	}
	return "the connection failed"
}
