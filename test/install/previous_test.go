package install

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// firstPrevious is the commit that is taken for the version before where no tag is, as before the first release; see
// CONTRIBUTING.md.
//
//go:embed previous
var firstPrevious string

// buildPrevious checks out the version before this one and builds its operator, in the cache, unless that was done before. It
// is the newest tag below the commit that is tested.
func buildPrevious(ctx context.Context) version {
	GinkgoHelper()
	name := strings.TrimSpace(firstPrevious)
	if tag, err := git(ctx, nil, "describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^"); err == nil {
		name = tag
	}
	commit, err := git(ctx, nil, "rev-parse", "--verify", name+"^{commit}")
	if err != nil {
		Fail("There is nothing to upgrade from: this checkout lacks the version before, " + name + ", because it is shallow or no " +
			"checkout of git. Fetch the whole history with its tags (git fetch --unshallow --tags). git says: " + err.Error())
	}
	cache, err := cluster.CacheDir()
	Expect(err).NotTo(HaveOccurred(), "there is a cache")
	root := filepath.Join(cache, "previous", commit)
	if _, err := os.Stat(root); err != nil {
		AddReportEntry("Building " + name + ", which takes minutes the first time.")
		checkOut(ctx, commit, root)
	}
	return version{name, root, filepath.Join(root, "tideline")}
}

// checkOut puts a commit's files and its operator into a folder, which is there when it is whole. git writes its index elsewhere,
// so that this checkout and what runs beside the test notice nothing.
func checkOut(ctx context.Context, commit, root string) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(root), 0o755)).To(Succeed(), "the cache is writable")
	unfinished, err := os.MkdirTemp(filepath.Dir(root), "unfinished-")
	Expect(err).NotTo(HaveOccurred(), "the cache is writable")
	defer func() { _ = os.RemoveAll(unfinished) }()
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(GinkgoT().TempDir(), "index")}
	for _, arguments := range [][]string{{"read-tree", commit}, {"checkout-index", "--all", "--prefix=" + unfinished + "/"}} {
		_, err := git(ctx, index, arguments...)
		Expect(err).NotTo(HaveOccurred(), "commit %s is checked out", commit)
	}
	_, err = testutil.BuildOperatorOf(ctx, unfinished, unfinished)
	Expect(err).NotTo(HaveOccurred(), "its operator is built")
	if err := os.Rename(unfinished, root); err != nil {
		Expect(root).To(BeADirectory(), "it is kept (%v)", err) // by somebody who was quicker
	}
}

// git runs git in this checkout, which may belong to somebody else, and returns what it prints.
func git(ctx context.Context, environment []string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-C", thisRoot}, arguments...)...)
	cmd.Env = append(os.Environ(), environment...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), err
}
