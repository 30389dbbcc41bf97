package ledger

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// On a disk that is full because of others, a ledger keeps what it has, and goes on once there is room.
func TestFullDisk(t *testing.T) {
	g := NewWithT(t)
	ctx, folder := t.Context(), t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Skipf("only who may mount can make a small disk: %v", err)
	}
	t.Cleanup(func() { g.Expect(syscall.Unmount(folder, syscall.MNT_DETACH)).To(Succeed()) })
	l := opened(t, g, Options{File: filepath.Join(folder, "ledger.db")})
	others := filepath.Join(folder, "others")
	g.Expect(os.WriteFile(others, make([]byte, 2<<20), 0o600)).To(Succeed())
	refused, recorded := recordUntil(ctx, g, l)
	g.Expect(recorded).To(BeNumerically(">", 0))
	checkHours(ctx, g, l, recorded)
	g.Expect(os.Remove(others)).To(Succeed())
	g.Expect(l.RecordEntries(ctx, refused)).To(Succeed())
	checkHours(ctx, g, l, recorded+len(refused.Stays))
	g.Expect(l.Close()).To(Succeed())
	checkHours(ctx, g, opened(t, g, Options{File: filepath.Join(folder, "ledger.db")}), recorded+len(refused.Stays))
}
