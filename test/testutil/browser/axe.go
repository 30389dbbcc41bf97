package browser

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tideline-io/tideline/test/cluster"
)

// axe-core (https://github.com/dequelabs/axe-core) finds what keeps people from reading a page: contrasts, names, order, roles.
const (
	axeVersion = "4.10.2"
	axeSum     = "b511cd9dec01c76f4b2ad1723b66b6db37d4c2eb4ed199076e1829d9ee7b75e3"
)

// ErrNoAxe is for machines that cannot get axe-core: npm is missing, or reaches no registry.
var ErrNoAxe = errors.New("axe-core cannot be had here")

// Axe returns the program axe-core from the cache, or by npm the first time; [ErrNoAxe] where that fails.
func Axe(ctx context.Context) (string, error) {
	cache, err := cluster.CacheDir()
	if err != nil {
		return "", err
	}
	kept := filepath.Join(cache, "axe-core-"+axeVersion+".js")
	if content, err := os.ReadFile(kept); err == nil && isAxe(content) {
		return string(content), nil
	}
	folder, err := os.MkdirTemp("", "tideline-axe-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	pack := exec.CommandContext(ctx, "npm", "pack", "axe-core@"+axeVersion)
	pack.Dir = folder
	if said, err := pack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: npm pack: %w: %s", ErrNoAxe, err, said)
	}
	content, err := unpack(filepath.Join(folder, "axe-core-"+axeVersion+".tgz"), "package/axe.min.js")
	if err != nil {
		return "", err
	}
	if !isAxe(content) {
		return "", fmt.Errorf("axe-core %s from npm is not the one whose SHA-256 is %s", axeVersion, axeSum)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	// Another test may do the same now: a rename leaves no half of it.
	whole := filepath.Join(folder, "axe.js")
	if err := os.WriteFile(whole, content, 0o600); err == nil {
		_ = os.Rename(whole, kept) // Across file systems it fails, and the next test gets it again.
	}
	return string(content), nil
}

func isAxe(content []byte) bool {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]) == axeSum
}

// unpack reads one file of a tar archive that gzip compressed.
func unpack(archive, name string) ([]byte, error) {
	packed, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(plain); ; {
		switch file, err := files.Next(); {
		case err != nil:
			return nil, fmt.Errorf("%s in %s: %w", name, archive, err)
		case file.Name == name:
			return io.ReadAll(files)
		}
	}
}

// Audit has axe-core judge the page that is shown, and returns what is wrong, an element each.
func (b *Browser) Audit(axe string) ([]string, error) {
	var found []string
	err := b.Ask(axe+`;
		axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.flatMap(
			v => v.nodes.map(n => v.id + ": " + v.help + ": " + n.html.slice(0, 200) + " " + n.failureSummary.slice(0, 300))))`, &found)
	return found, err
}
