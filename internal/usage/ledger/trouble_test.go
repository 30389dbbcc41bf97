package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/tideline-io/tideline/test/testutil/postgres"
)

// Operators that all believe to lead, and record the same from processes of their own, leave a ledger as one of them would.
func TestManyOperatorsOnOneLedger(t *testing.T) {
	onBoth(t, func(t *testing.T, where Options) {
		g := NewWithT(t)
		ctx := t.Context()
		alone := Options{File: filepath.Join(t.TempDir(), "alone.db")}
		g.Expect(tell(ctx, alone, "pods", &bomb{})).To(Succeed())
		want, err := everything(ctx, opened(t, g, alone))
		g.Expect(err).NotTo(HaveOccurred())
		var all errgroup.Group
		for range 4 {
			all.Go(func() error {
				cmd := exec.CommandContext(ctx, os.Args[0])
				cmd.Env = append(os.Environ(), crashAt+"=1000000", crashStory+"=pods", crashFile+"="+where.File,
					crashDSN+"="+where.PostgresDSN)
				if out, err := cmd.CombinedOutput(); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				return nil
			})
		}
		g.Expect(all.Wait()).To(Succeed(), "each waits for the others' locks")
		// Who was last to record may have been before another's last deletion of what is too old.
		g.Expect(tell(ctx, where, "pods", &bomb{})).To(Succeed())
		g.Expect(everything(ctx, opened(t, g, where))).To(Equal(want), "nothing is lost or counted twice")
	})
}

// recordUntil records days of pods until the ledger has no room, and returns what was refused and how many were recorded before.
func recordUntil(ctx context.Context, g *WithT, l *Ledger) (refused Entries, recorded int) {
	g.THelper()
	for i := range 1000 {
		var e Entries
		for j := range 50 {
			e.Stays = append(e.Stays, stay(fmt.Sprintf("%d-%d", i, j), "14 22:00:00", "15 01:00:00"))
		}
		if err := l.RecordEntries(ctx, e); err != nil {
			g.Expect(err).To(MatchError(ErrUnavailable), "it may be tried again")
			g.Expect(err).To(MatchError(ContainSubstring("its disk is full: make room")))
			return e, 50 * i
		}
	}
	g.Expect(errors.New("the disk never was full")).NotTo(HaveOccurred())
	return refused, 0
}

// checkHours holds a ledger to so many pods of recordUntil.
func checkHours(ctx context.Context, g *WithT, l *Ledger, pods int) {
	g.THelper()
	g.Expect(gpuSeconds(ctx, g, l, "14 00:00:00", "16 00:00:00")).To(Equal(map[string][2]int64{"": seconds(int64(pods) * 3 * 3600)}))
}

// Where there is no room, what was recorded stays and can be read and saved, and what was refused is recorded once there is.
func TestNoRoom(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	l := opened(t, g, Options{File: filepath.Join(t.TempDir(), "ledger.db")})
	_, err := l.writer.ExecContext(ctx, "PRAGMA max_page_count = 100")
	g.Expect(err).NotTo(HaveOccurred())
	refused, recorded := recordUntil(ctx, g, l)
	g.Expect(recorded).To(BeNumerically(">", 0))
	checkHours(ctx, g, l, recorded)
	g.Expect(l.RecordEntries(ctx, refused)).To(MatchError(ErrUnavailable), "still none")
	b := backedUp(ctx, g, l)
	g.Expect(b).NotTo(BeEmpty())
	_, err = l.writer.ExecContext(ctx, "PRAGMA max_page_count = 1000000")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.RecordEntries(ctx, refused)).To(Succeed())
	checkHours(ctx, g, l, recorded+len(refused.Stays))
}

// A server that is killed in the middle of writes, and another that takes its place, lose nothing that was recorded, and what is
// recorded again because its answer was lost counts once.
func TestServersFailOver(t *testing.T) {
	if server == nil {
		t.Skip(notInstalled)
	}
	g := NewWithT(t)
	ctx := t.Context()
	first, err := postgres.Start(ctx, "fsync=off")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(first.Stop()).To(Succeed()) }()
	second, err := first.StartStandby(ctx, "fsync=off")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(second.Stop()).To(Succeed()) }()
	both := url.URL{Scheme: "postgres", User: url.User("tideline"), Path: "/postgres", RawQuery: url.Values{
		"host": {first.Folder() + "," + second.Folder()}, "sslmode": {"disable"}, "target_session_attrs": {"read-write"},
	}.Encode()}
	l := opened(t, g, Options{PostgresDSN: both.String()})
	const pods = 400
	failed := 0
	for i := range pods {
		e := Entries{Stays: []Stay{stay(strconv.Itoa(i), "14 22:00:00", "15 01:00:00")}}
		if i == pods/2 {
			time.AfterFunc(5*time.Millisecond, first.Kill)
		}
		g.Eventually(func() error {
			err := l.RecordEntries(ctx, e)
			if err != nil {
				g.Expect(err).To(MatchError(ErrUnavailable), "it may be tried again")
				if failed++; failed == 3 {
					g.Expect(second.Promote(ctx)).To(Succeed(), "the other takes over")
				}
			}
			return err
		}).WithTimeout(time.Minute).Should(Succeed(), "pod %d is recorded", i)
	}
	g.Expect(failed).To(BeNumerically(">=", 3), "the first was killed in the middle")
	checkHours(ctx, g, l, pods)
}
