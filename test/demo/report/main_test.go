package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheOneFileToOpenIsNamed(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	g.Expect(run(t.Context(), &out)).To(Succeed())
	first, rest, _ := strings.Cut(out.String(), "\n")
	page, named := strings.CutPrefix(first, "Open ")
	g.Expect(named).To(BeTrue(), first)
	g.Expect(os.ReadFile(page)).To(ContainSubstring("<html"))
	g.Expect(rest).NotTo(ContainSubstring(filepath.Dir(page)), "no other path stands beside it")
}
