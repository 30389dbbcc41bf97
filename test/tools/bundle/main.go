// Command bundle makes the bundle by which OLM installs the operator.
//
//	kustomize build config/manifests | bundle [-repository=FOLDER] [-version=VERSION] [-image=IMAGE]
//
// It reads rendered manifests from standard input and the rest of what a bundle says from the repository: the description and
// the icon beside the manifests, display names and owned resources from the markers of the API types. It writes bundle/ and
// bundle.Dockerfile. The same input makes the same files: nothing in them comes from a clock, from git or from the network.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	repository := flag.String("repository", ".", "folder of the repository")
	version := flag.String("version", "", "version of the operator; default: spec.version of the base in config/manifests")
	image := flag.String("image", "",
		"image of the operator; default: annotation containerImage of the base in config/manifests, with the version as tag")
	flag.Parse()
	if err := run(*repository, os.Stdin, *version, *image); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run(repository string, manifests io.Reader, version, image string) error {
	in, err := read(repository, manifests)
	if err != nil {
		return err
	}
	in.Version, in.Image = version, image
	files, err := Generate(in)
	if err != nil {
		return err
	}
	return write(repository, files)
}

// read collects what the bundle is made from.
func read(repository string, manifests io.Reader) (Input, error) {
	objects, err := decode(manifests)
	if err != nil {
		return Input{}, fmt.Errorf("read the manifests: %w", err)
	}
	docs, err := readDocs(filepath.Join(repository, "api", "v1beta1"))
	if err != nil {
		return Input{}, err
	}
	description, errDescription := os.ReadFile(filepath.Join(repository, "config", "manifests", "description.md"))
	icon, errIcon := os.ReadFile(filepath.Join(repository, "config", "manifests", "icon.svg"))
	in := Input{Objects: objects, Docs: docs, Description: string(description), Icon: icon}
	return in, errors.Join(errDescription, errIcon)
}

// write replaces the bundle of the repository. Files that are no longer part of it go.
func write(repository string, files map[string][]byte) error {
	if err := os.RemoveAll(filepath.Join(repository, "bundle")); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(repository, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
