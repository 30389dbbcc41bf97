//go:build linux

package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
)

// Image is one of layers, the lowest first.
type Image struct {
	// Name is the one that pods have, with a tag.
	Name string
	// Layers are tar files that are not compressed.
	Layers []Layer
	// Env has a variable of each process, as NAME=value; Entrypoint is what runs where the pod says nothing.
	Env, Entrypoint []string
}

// Layer is a tar file.
type Layer struct {
	path   string
	digest string // SHA-256, in hexadecimal
}

// fileOf is a file, a folder or a link of a layer.
type fileOf struct {
	name    string
	mode    int64
	content []byte
}

// newLayer writes a layer of some files to a folder.
func newLayer(folder string, files ...fileOf) (Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content))}
		if f.content == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return Layer{}, err
		}
		if _, err := w.Write(f.content); err != nil {
			return Layer{}, err
		}
	}
	if err := w.Close(); err != nil {
		return Layer{}, err
	}
	sum := sha256.Sum256(b.Bytes())
	l := Layer{digest: hex.EncodeToString(sum[:])}
	l.path = filepath.Join(folder, l.digest+".tar")
	return l, os.WriteFile(l.path, b.Bytes(), 0o600)
}

// digestFile is where the digest of a tar file is kept.
func digestFile(file string) string { return file + ".sha256" }

// openLayer is the layer of a tar file that exists. Its digest is kept beside it: to make it takes seconds.
func openLayer(file string) (Layer, error) {
	known := digestFile(file)
	if digest, err := os.ReadFile(known); err == nil {
		return Layer{file, string(digest)}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return Layer{}, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return Layer{}, err
	}
	l := Layer{file, hex.EncodeToString(h.Sum(nil))}
	whole := known + ".new" // a digest is there whole or not at all
	return l, errors.Join(os.WriteFile(whole, []byte(l.digest), 0o600), os.Rename(whole, known))
}

// writeArchive writes images as `docker save` does, each layer once.
func writeArchive(to io.Writer, images []Image) error {
	type entry struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	w := tar.NewWriter(to)
	var manifest []entry
	written := map[string]bool{}
	for _, image := range images {
		config, err := image.config()
		if err != nil {
			return err
		}
		sum := sha256.Sum256(config)
		e := entry{Config: hex.EncodeToString(sum[:]) + ".json", RepoTags: []string{image.Name}}
		if err := add(w, e.Config, int64(len(config)), bytes.NewReader(config)); err != nil {
			return err
		}
		for _, l := range image.Layers {
			name := path.Join(l.digest, "layer.tar")
			e.Layers = append(e.Layers, name)
			if written[name] {
				continue
			}
			written[name] = true
			if err := addFile(w, name, l.path); err != nil {
				return err
			}
		}
		manifest = append(manifest, e)
	}
	content, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	return errors.Join(add(w, "manifest.json", int64(len(content)), bytes.NewReader(content)), w.Close())
}

// config is the image's configuration as OCI has it.
func (i *Image) config() ([]byte, error) {
	digests := make([]string, len(i.Layers))
	for n, l := range i.Layers {
		digests[n] = "sha256:" + l.digest
	}
	return json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Env": i.Env, "Entrypoint": i.Entrypoint},
		"rootfs": map[string]any{"type": "layers", "diff_ids": digests},
	})
}

func add(w *tar.Writer, name string, size int64, content io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(w, content)
	return err
}

func addFile(w *tar.Writer, name, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := add(w, name, info.Size(), f); err != nil {
		return fmt.Errorf("adding %s: %w", file, err)
	}
	return nil
}
