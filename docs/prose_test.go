package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The ceilings, in percent. They only fall: a change that gets below one lowers it.
const (
	// riddlesCeiling is for sentences of pages, comments and messages that say "of which", "by whom" and the like.
	riddlesCeiling = 1.0
	// oneWordCeiling is for exported functions and methods of one word, those that interfaces of others ask for included.
	oneWordCeiling = 17.7
	// slack is how far below its ceiling a share may be, in percentage points.
	slack = 0.5
)

// mostMethods is how many methods a type may have.
const mostMethods = 50

var (
	riddle  = regexp.MustCompile(`(?i)\b(of which|by whom|for whom|nobody|none that)\b`)
	oneWord = regexp.MustCompile(`^[A-Z][a-z0-9]*$`)
	// sentenceEnd is what ends a sentence: a colon does not.
	sentenceEnd = regexp.MustCompile(`[.!?;]["')\x60]*(\s+|$)|\n\s*\n(\s*[-*|]\s+)?|\n\s*[-*|]\s+`)
	codeBlock   = regexp.MustCompile("(?s)```.*?```")
)

func TestSentencesArePlain(t *testing.T) {
	all, riddles := 0, []string{}
	take := func(where, prose string) {
		for _, sentence := range sentences(prose) {
			all++
			if riddle.MatchString(sentence) {
				riddles = append(riddles, where+": "+sentence)
			}
		}
	}
	for _, page := range pages(t) {
		if page != "docs/reference/api.md" { // Generated from comments, which count where they stand.
			take(page, codeBlock.ReplaceAllString(read(t, page), ""))
		}
	}
	goFiles(t, func(path string, file *ast.File) {
		for _, comment := range file.Comments {
			take(path, comment.Text())
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(literal.Value); err == nil && strings.Count(text, " ") > 2 {
				take(path, text)
			}
			return true
		})
	})
	judge(t, "sentences with a riddle", riddles, all, riddlesCeiling)
}

func TestExportedFunctionsHaveTellingNames(t *testing.T) {
	all, short := 0, []string{}
	goFiles(t, func(path string, file *ast.File) {
		if strings.HasPrefix(path, "test/") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "zz_") {
			return
		}
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Name.IsExported() {
				all++
				if oneWord.MatchString(f.Name.Name) {
					short = append(short, path+": "+f.Name.Name)
				}
			}
		}
	})
	judge(t, "exported functions of one word", short, all, oneWordCeiling)
}

func TestTypesHaveFewMethods(t *testing.T) {
	methods := map[string]int{}
	goFiles(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "zz_") {
			return
		}
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[filepath.Dir(path)+": "+receiverOf(f)]++
			}
		}
	})
	for of, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d methods, more than %d: methods that hand the same parameters on are a type of their own",
				of, n, mostMethods)
		}
	}
}

// receiverOf is the name of the type that has the method.
func receiverOf(f *ast.FuncDecl) (name string) {
	// The first identifier, because a star may stand before the name and type parameters behind it.
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if identifier, ok := n.(*ast.Ident); ok && name == "" {
			name = identifier.Name
		}
		return name == ""
	})
	return name
}

// judge fails if more than ceiling percent of all were found, or so few that the ceiling has to follow.
func judge(t *testing.T, what string, found []string, all int, ceiling float64) {
	t.Helper()
	share := 100 * float64(len(found)) / float64(all)
	t.Logf("%s: %d of %d (%.2f %%)", what, len(found), all, share)
	switch {
	case share > ceiling:
		t.Errorf("%s: %.2f %%, and the ceiling is %.2f %%:\n%s", what, share, ceiling, strings.Join(found, "\n"))
	case share < ceiling-slack:
		t.Errorf("%s: %.2f %%: lower the ceiling of %.2f %%", what, share, ceiling)
	}
}

// sentences cuts prose into its sentences.
func sentences(prose string) (all []string) {
	for _, sentence := range sentenceEnd.Split(prose, -1) {
		if sentence = strings.Join(strings.Fields(sentence), " "); strings.Contains(sentence, " ") {
			all = append(all, sentence)
		}
	}
	return all
}

func TestSentences(t *testing.T) {
	got := sentences("One thing. \"Another one.\" A third; a fourth\n\n- a fifth one\n- 1.5 of a sixth: it is one\n\nword")
	want := []string{"One thing", `"Another one`, "A third", "a fourth", "a fifth one", "1.5 of a sixth: it is one"}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(got) != len(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// goFiles parses every Go file of the repository.
func goFiles(t *testing.T, visit func(path string, file *ast.File)) {
	t.Helper()
	positions := token.NewFileSet()
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != repository:
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		file, err := parser.ParseFile(positions, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repository, path)
		visit(filepath.ToSlash(relative), file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
