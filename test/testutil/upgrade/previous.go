package upgrade

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// firstPrevious is the commit that is taken for the version before where no tag is, as before the first release; see
// CONTRIBUTING.md.
//
//go:embed previous
var firstPrevious string

// lastFormer is the last commit that has the former names of fields (api/v1beta1/former.go).
//
//go:embed former
var lastFormer string

// Version is a version of Tideline.
type Version struct {
	// Name is its tag or commit, Root its source tree, and Program the operator that was built from it.
	Name, Root, Program string
}

// Previous checks out the version before the one in the source tree root and builds its operator, in the cache, unless that was
// done before. It is the newest tag below the commit that is tested.
func Previous(ctx context.Context, root string) Version {
	ginkgo.GinkgoHelper()
	name := strings.TrimSpace(firstPrevious)
	if tag, err := git(ctx, root, nil, "describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^"); err == nil {
		name = tag
	}
	return build(ctx, root, name)
}

// Former is the version with the former names of fields, likewise.
func Former(ctx context.Context, root string) Version {
	ginkgo.GinkgoHelper()
	return build(ctx, root, strings.TrimSpace(lastFormer))
}

// build checks out a version by its tag or commit and builds its operator, unless that was done before.
func build(ctx context.Context, root, name string) Version {
	ginkgo.GinkgoHelper()
	commit, err := git(ctx, root, nil, "rev-parse", "--verify", name+"^{commit}")
	if err != nil {
		ginkgo.Fail("There is nothing to upgrade from: this checkout lacks the version before, " + name + ", because it is shallow " +
			"or no checkout of git. Fetch the whole history with its tags (git fetch --unshallow --tags). git says: " + err.Error())
	}
	cache, err := cluster.CacheDir()
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "there is a cache")
	target := filepath.Join(cache, "previous", commit)
	if _, err := os.Stat(target); err != nil {
		ginkgo.AddReportEntry("Building " + name + ", which takes minutes the first time.")
		checkOut(ctx, root, commit, target)
	}
	return Version{name, target, filepath.Join(target, "tideline")}
}

// checkOut puts a commit's files and its operator into the folder target, which is there when it is whole. git writes its index
// elsewhere, so that the checkout root and what runs beside the test notice nothing.
func checkOut(ctx context.Context, root, commit, target string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(os.MkdirAll(filepath.Dir(target), 0o755)).To(gomega.Succeed(), "the cache is writable")
	unfinished, err := os.MkdirTemp(filepath.Dir(target), "unfinished-")
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "the cache is writable")
	defer func() { _ = os.RemoveAll(unfinished) }()
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(ginkgo.GinkgoT().TempDir(), "index")}
	for _, arguments := range [][]string{{"read-tree", commit}, {"checkout-index", "--all", "--prefix=" + unfinished + "/"}} {
		_, err := git(ctx, root, index, arguments...)
		gomega.Expect(err).NotTo(gomega.HaveOccurred(), "commit %s is checked out", commit)
	}
	_, err = testutil.BuildOperatorOf(ctx, unfinished, unfinished)
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "its operator is built")
	if err := os.Rename(unfinished, target); err != nil {
		gomega.Expect(target).To(gomega.BeADirectory(), "it is kept (%v)", err) // by somebody who was quicker
	}
}

// git runs git in the checkout root, which may belong to somebody else, and returns what it prints.
func git(ctx context.Context, root string, environment []string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-C", root}, arguments...)...)
	cmd.Env = append(os.Environ(), environment...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), err
}
