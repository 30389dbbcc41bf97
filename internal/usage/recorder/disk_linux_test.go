package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// While the disk of the ledger is full pods begin and end. What could not be written waits, and is in the ledger once when there
// is room, whether the operator opens the ledger anew or another one takes over.
func TestFullDiskCostsNoHours(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Skipf("only who may mount can make a small disk: %v", err)
	}
	// What is cleaned up last is registered first.
	t.Cleanup(func() { g.Expect(syscall.Unmount(folder, syscall.MNT_DETACH)).To(Succeed()) })
	file, others := filepath.Join(folder, "ledger.db"), filepath.Join(folder, "others")
	o := leading(t, g, file)
	began := time.Now().Add(-time.Hour).Truncate(time.Second)
	pod := func(name string, with ...func(*corev1.Pod)) *corev1.Pod {
		p := newPod(name, boundOn(began), labelled("tideline.io/owner", "alice"))
		for _, f := range with {
			f(p)
		}
		return p
	}
	ended := phase(corev1.PodSucceeded, began.Add(30*time.Minute))
	o.set(pod("before"))
	g.Expect(o.write()).To(Succeed())

	g.Expect(fill(others)).To(MatchError(syscall.ENOSPC))
	o.set(pod("before", ended))
	const pods = 500
	for i := range pods {
		o.set(pod(fmt.Sprintf("p-%d", i)))
		o.set(pod(fmt.Sprintf("p-%d", i), ended))
	}
	for range 3 {
		g.Expect(o.write()).To(MatchError(ledger.ErrUnavailable), "it is tried again")
	}
	g.Expect(o.recorder.size()).To(BeNumerically(">", 0), "it waits")

	g.Expect(os.Remove(others)).To(Succeed())
	g.Expect(o.recorder.closeGap(t.Context(), o.to)).To(Succeed(), "a new session")
	g.Expect(o.write()).To(Succeed())
	g.Expect(o.recorder.size()).To(BeZero())
	next := leading(t, g, file)
	for i := range pods {
		next.set(pod(fmt.Sprintf("p-%d", i), ended))
	}
	next.set(pod("before", ended))
	g.Expect(next.write()).To(Succeed())
	for _, each := range []operator{o, next} {
		g.Expect(each.hours(g)).To(BeNumerically("~", (pods+1)*0.5, 0.01))
	}
}

// fill writes a file until there is no room, and returns why it stopped.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for size := 1 << 16; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	return errors.Join(err, f.Close())
}
