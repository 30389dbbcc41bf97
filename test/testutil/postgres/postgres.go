// Package postgres starts a PostgreSQL server of a test's own, if PostgreSQL is installed.
package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotInstalled is for machines without PostgreSQL.
var ErrNotInstalled = errors.New("there is no PostgreSQL on PATH or in /usr/lib/postgresql")

// Server is a running server. It listens on a socket in a folder of its own only, and trusts whoever can open it.
type Server struct {
	folder  string
	process *exec.Cmd
	log     *bytes.Buffer
	schemas atomic.Int64
	// programs is the folder of PostgreSQL's programs.
	programs string
}

// Start starts an empty server with settings such as fsync=off. As root it runs as user postgres or nobody, because PostgreSQL
// refuses to run as root.
func Start(ctx context.Context, settings ...string) (*Server, error) {
	return launch(ctx, settings, func(s *Server, data string) *exec.Cmd {
		return exec.CommandContext(ctx, filepath.Join(s.programs, "initdb"), "--pgdata="+data, "--auth=trust",
			"--username=tideline", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	})
}

// StartStandby starts a server that follows this one, which from then on answers a commit only once the other has it.
func (s *Server) StartStandby(ctx context.Context, settings ...string) (*Server, error) {
	standby, err := launch(ctx, settings, func(other *Server, data string) *exec.Cmd {
		return exec.CommandContext(ctx, filepath.Join(other.programs, "pg_basebackup"), "--pgdata="+data, "--write-recovery-conf",
			"--checkpoint=fast", "--no-sync", "--host="+s.folder, "--username=tideline")
	})
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if err := s.execute(ctx, statement); err != nil {
			return nil, errors.Join(err, standby.Stop())
		}
	}
	return standby, nil
}

// Promote has a standby take the place of the server that it follows.
func (s *Server) Promote(ctx context.Context) error { return s.execute(ctx, "SELECT pg_promote()") }

// Kill ends the server as a crash of its machine would, as far as its clients see.
func (s *Server) Kill() { _ = s.process.Process.Signal(syscall.SIGQUIT) }

// Folder is where the server's socket is.
func (s *Server) Folder() string { return s.folder }

func (s *Server) execute(ctx context.Context, statement string) (err error) {
	connection, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, connection.Close(ctx)) }()
	_, err = connection.Exec(ctx, statement)
	return err
}

// launch starts a server in a folder of its own, whose data a command makes.
func launch(ctx context.Context, settings []string, create func(*Server, string) *exec.Cmd) (*Server, error) {
	programs, err := programs()
	if err != nil {
		return nil, err
	}
	// Not in TMPDIR: another user may not come there, and the path of a socket is at most 107 bytes long.
	folder, err := os.MkdirTemp("/tmp", "tideline-postgres-")
	if err != nil {
		return nil, err
	}
	s := &Server{folder: folder, log: &bytes.Buffer{}, programs: programs}
	if err := s.start(ctx, settings, create); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, s.log), s.Stop())
	}
	return s, nil
}

// programs finds the folder of PostgreSQL's programs, of the newest version.
func programs() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		// Where it is a link, initdb is beside what it leads to.
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return "", ErrNotInstalled
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 for what is no version
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

func (s *Server) start(ctx context.Context, settings []string, create func(*Server, string) *exec.Cmd) error {
	who, err := unprivileged(s.folder)
	if err != nil {
		return err
	}
	data := filepath.Join(s.folder, "data")
	creating := s.command(create(s, data), who)
	if err := creating.Run(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(creating.Path), err)
	}
	args := []string{"-D", data, "-c", "listen_addresses=", "-c", "unix_socket_directories=" + s.folder}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	// It outlives ctx: Stop ends it.
	s.process = s.command(exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(s.programs, "postgres"), args...), who)
	if err := s.process.Start(); err != nil {
		return err
	}
	return s.await(ctx)
}

func (s *Server) command(c *exec.Cmd, who *syscall.Credential) *exec.Cmd {
	c.Dir, c.Stdout, c.Stderr, c.SysProcAttr = s.folder, s.log, s.log, attributes(who)
	return c
}

// unprivileged is the user that the server runs as, to whom the folder then belongs; nil for who runs the test.
func unprivileged(folder string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // no other user is no error
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		if who, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(folder, int(uid), int(gid))
}

// await waits until the server answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		connection, err := pgx.Connect(ctx, s.DSN())
		if err == nil {
			return connection.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// DSN leads to the server's database.
func (s *Server) DSN() string {
	return (&url.URL{Scheme: "postgres", User: url.User("tideline"), Path: "/postgres", RawQuery: url.Values{
		"host": {s.folder}, "sslmode": {"disable"},
	}.Encode()}).String()
}

// Schema makes an empty schema and returns a DSN that leads to it.
func (s *Server) Schema(ctx context.Context) (dsn string, err error) {
	connection, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, connection.Close(ctx)) }()
	name := fmt.Sprintf("test_%d", s.schemas.Add(1))
	if _, err := connection.Exec(ctx, "CREATE SCHEMA "+name); err != nil {
		return "", err
	}
	return s.DSN() + "&search_path=" + name, nil
}

// Stop ends the server and removes everything it wrote.
func (s *Server) Stop() error {
	var err error
	if s.process != nil && s.process.Process != nil {
		err = s.process.Process.Signal(syscall.SIGQUIT) // at once: nobody reads its files any more
		_ = s.process.Wait()                            // with a status that says so
	}
	return errors.Join(err, os.RemoveAll(s.folder))
}
