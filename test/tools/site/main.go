// Site builds the documentation into a folder of HTML that needs no server, no script and nothing from elsewhere:
//
//	site [-repository=FOLDER] -out=FOLDER
//
// Each page below docs becomes one, README.md being the index of its folder. The index of docs is the navigation of all pages.
// A link that leads nowhere is an error; one that leaves docs leads to the repository on GitHub.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	repository := flag.String("repository", ".", "root `FOLDER` of the repository")
	out := flag.String("out", "", "`FOLDER` to write, which is replaced")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	files, err := build(os.DirFS(*repository))
	if err == nil {
		err = write(*out, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("wrote %d files to %s\n", len(files), *out)
}

// write replaces a folder.
func write(folder string, files map[string][]byte) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Where the sources are, and where they are shown.
const (
	docs   = "docs"
	remote = "https://github.com/tideline-io/tideline/blob/main/"
)

// build returns the files of the site by their paths.
func build(repository fs.FS) (map[string][]byte, error) {
	style, err := assets.ReadFile("style.css")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"style.css": style}
	var pages []*page
	err = fs.WalkDir(repository, docs, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) == ".go" {
			return err
		}
		content, err := fs.ReadFile(repository, name)
		if err != nil {
			return err
		}
		if filepath.Ext(name) == ".md" {
			pages = append(pages, parse(name, content))
			return nil
		}
		files[target(name)] = content
		return nil
	})
	if err != nil {
		return nil, err
	}
	s := &site{repository: repository, pages: map[string]*page{}}
	for _, p := range pages {
		s.pages[p.source] = p
	}
	if s.chapters, err = s.navigation(); err != nil {
		return nil, err
	}
	for _, p := range pages {
		if files[target(p.source)], err = s.render(p); err != nil {
			return nil, fmt.Errorf("%s: %w", p.source, err)
		}
	}
	return files, nil
}
