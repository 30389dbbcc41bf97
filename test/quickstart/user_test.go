package quickstart

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/markdown"
)

const repository = "../.."

// user is an admin of a cluster who has a clone of the repository.
type user struct {
	// clone is the user's working directory.
	clone string
	env   []string
	node  *node
}

// engine stands in for a container engine, of which there is none here: it notes what it is asked to do.
const engine = "#!/bin/sh\necho \"$@\" >>\"$ENGINE_LOG\"\n"

// newUser clones the repository into dir, as it is with what is not committed.
func newUser(ctx context.Context, dir string, n *node) *user {
	GinkgoHelper()
	u := &user{clone: filepath.Join(dir, "clone"), node: n}
	Expect(copyTree(u.clone, repository)).To(Succeed(), "the repository is copied")
	docker := filepath.Join(dir, "docker")
	Expect(os.WriteFile(docker, []byte(engine), 0o700)).To(Succeed(), "there is a container engine")
	kubectl, err := cluster.Kubectl(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred(), "there is a kubectl")
	u.env, err = testutil.Environment(filepath.Join(dir, "user"), n.cluster.KubeconfigPath(), kubectl, docker)
	Expect(err).NotTo(HaveOccurred(), "the programs are on PATH")
	u.env = append(u.env, "ENGINE_LOG="+u.engineLog())
	return u
}

func (u *user) engineLog() string { return filepath.Join(filepath.Dir(u.clone), "engine.log") }

// engineRan is what the container engine was asked to do so far, one line each.
func (u *user) engineRan() string {
	GinkgoHelper()
	log, err := os.ReadFile(u.engineLog())
	Expect(err).NotTo(HaveOccurred(), "the container engine was asked for something")
	return string(log)
}

// copyTree copies a work tree without what git and make keep in it.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case name == ".git" || name == "bin":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, info.Mode().Perm())
	})
}

// read is a file of the clone.
func (u *user) read(path string) string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(u.clone, path))
	Expect(err).NotTo(HaveOccurred(), "%s is read", path)
	return string(content)
}

// run runs a shell program in the clone and returns what it prints.
func (u *user) run(ctx context.Context, program, stdin string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", program)
	cmd.Dir, cmd.Env, cmd.Stdin = u.clone, u.env, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// do runs a shell program, which must succeed, and has the node do its part.
func (u *user) do(ctx context.Context, where, program string) {
	GinkgoHelper()
	By(where + ": " + program)
	out, err := u.run(ctx, program, "")
	Expect(err).NotTo(HaveOccurred(), "%s: %s%s", where, program, out)
	GinkgoWriter.Println(out)
	u.node.sync(ctx)
}

// follow does what a text of a page says: it runs each block of sh, and repeats each command of a block of console, which only
// looks, until it prints what the page shows.
func (u *user) follow(ctx context.Context, page, text string) {
	GinkgoHelper()
	steps := 0
	for _, block := range markdown.Blocks(text) {
		where := fmt.Sprintf("%s, block %d", page, steps+1)
		switch block.Language {
		case "sh":
			u.do(ctx, where, block.Text)
		case "console":
			for command, shown := range commands(block.Text) {
				By(where + ": " + command)
				Eventually(func() string {
					out, _ := u.run(ctx, command, "") // a failure is what it prints
					return out
				}).Should(MatchRegexp(like(shown)), "%s: `%s` prints\n%s", where, command, shown)
			}
		default:
			continue
		}
		steps++
	}
	Expect(steps).To(BeNumerically(">", 1), "%s has steps", page)
}

// commands yields the commands of a block of console, which begin with a dollar, with what is shown below each.
func commands(console string) func(yield func(command, shown string) bool) {
	return func(yield func(command, shown string) bool) {
		for _, each := range strings.Split("\n"+console, "\n$ ")[1:] {
			command, shown, _ := strings.Cut(each, "\n")
			if !yield(command, shown) {
				return
			}
		}
	}
}

var age = regexp.MustCompile(`^(\d+[smhd])+$`)

// like is an expression for what a page shows: the same words with any space between them, any age for an age, and some words for
// "[...]".
func like(shown string) string {
	var words []string
	for _, word := range strings.Fields(shown) {
		switch {
		case word == "[...]":
			word = `\S+(?:\s+\S+)*?`
		case age.MatchString(word):
			word = `(?:\d+[smhd])+`
		default:
			word = regexp.QuoteMeta(word)
		}
		words = append(words, word)
	}
	return `^\s*` + strings.Join(words, `\s+`) + `\s*$`
}
