// Command report writes the cost report of a week that is made up, and opens it where there is something to open it with.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/cost/report"
	"github.com/tideline-io/tideline/test/testutil/week"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes what a team gets, and what one person gets, into a new folder, and says which file to open.
func run(ctx context.Context, out io.Writer) error {
	folder, err := os.MkdirTemp("", "tideline-report-")
	if err != nil {
		return err
	}
	computed, err := week.Computed(ctx)
	if err != nil {
		return err
	}
	everybody := report.Options{Name: "weekly", Top: 10}
	mail, err := report.ComposeMail(computed, everybody)
	if err != nil {
		return err
	}
	files := mail.Attachments
	files = append(files, report.File{Name: "mail.txt", Content: []byte(mail.Text)})
	for _, of := range []struct {
		name    string
		options report.Options
		write   func(cost.Report, report.Options) ([]byte, error)
	}{
		{"weekly.html", everybody, report.RenderPage},
		{"tomas.html", report.Options{Name: "weekly", Person: "tomas"}, report.RenderPage},
		{"report.json", everybody, report.JSON},
		{"focus.csv", everybody, report.FOCUS},
	} {
		content, err := of.write(computed, of.options)
		if err != nil {
			return err
		}
		files = append(files, report.File{Name: of.name, Content: content})
	}
	for _, file := range files {
		path := filepath.Join(folder, file.Name)
		if err := os.WriteFile(path, file.Content, 0o600); err != nil {
			return err
		}
	}
	page := filepath.Join(folder, "weekly.html")
	_, err = fmt.Fprintf(out, "Open %s\n\nBeside it are the same report in other forms, its mail, and the page of one person "+
		"(tomas.html).\n", page)
	if err != nil {
		return err
	}
	return show(ctx, page)
}

// show opens a file for who sits at a terminal, if there is a program for that.
func show(ctx context.Context, path string) error {
	if terminal, err := os.Stdout.Stat(); err != nil || terminal.Mode()&os.ModeCharDevice == 0 {
		return err
	}
	for _, program := range []string{"xdg-open", "open"} {
		if found, err := exec.LookPath(program); err == nil {
			return exec.CommandContext(ctx, found, path).Run()
		}
	}
	return nil
}
