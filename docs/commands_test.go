package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// planners are the packages that decide, but for internal/capacity, whose questions write what they found out into its caches.
var planners = []string{
	"internal/cost/costreport", "internal/merging", "internal/quota", "internal/quota/admission",
	"internal/training", "internal/training/describe", "internal/training/growth", "internal/training/jobstate",
	"internal/training/losses",
}

// Whoever reads `a && b` may swap a and b. Where b writes to what it belongs to, that changes what the operator does, so such a
// method is called in a statement of its own.
func TestWhatWritesStaysOutOfCompoundConditions(t *testing.T) {
	for _, folder := range planners {
		for _, wrong := range writesInConditions(t, filepath.Join("..", folder)) {
			t.Error(wrong)
		}
	}
}

func TestWritesInConditionsAreFound(t *testing.T) {
	folder := t.TempDir()
	const source = `package x

type p struct{ n int; list []int; next *p }

func (q *p) asks() bool { return q.n > 0 }

func (q *p) acts() bool { q.n++; return true }

func (q *p) passesOn() bool { return q.acts() }

func (q *p) fills() bool { q.next.list = append(q.next.list, 1); return true }

func (q *p) local() bool { n := q.n; n++; return n > 0 }

func (q *p) through() bool { other := q.next; other.n++; return true }

func (q *p) wrong() bool { return q.asks() && q.passesOn() || q.local() && q.next.fills() || q.through() }

func (q *p) alone() bool {
	if ready := q.acts(); !ready {
		return false
	}
	return q.asks() && q.local()
}
`
	if err := os.WriteFile(filepath.Join(folder, "x.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, wrong := range writesInConditions(t, folder) {
		found = append(found, wrong[strings.LastIndex(wrong, " ")+1:])
	}
	if want := []string{"fills", "passesOn", "through"}; !slices.Equal(slices.Sorted(slices.Values(found)), want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

// writesInConditions lists calls of writing methods that are operands of && or ||.
func writesInConditions(t *testing.T, folder string) []string {
	t.Helper()
	positions := token.NewFileSet()
	code := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	packages, err := parser.ParseDir(positions, folder, code, 0) //nolint:staticcheck // one package, without its imports
	if err != nil {
		t.Fatal(err)
	}
	var wrong []string
	for _, files := range packages {
		writes := writers(files)
		ast.Inspect(files, func(n ast.Node) bool {
			both, ok := n.(*ast.BinaryExpr)
			if !ok || both.Op != token.LAND && both.Op != token.LOR {
				return true
			}
			for _, side := range []ast.Expr{both.X, both.Y} {
				for _, called := range calls(side) {
					if writes[called.Sel.Name] {
						wrong = append(wrong, fmt.Sprintf("%s: a compound condition calls %s", positions.Position(called.Pos()), called.Sel.Name))
					}
				}
			}
			return true
		})
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

// writers are the methods of a package that write to their receiver, or call one that does on it or on what it holds.
func writers(files *ast.Package) map[string]bool { //nolint:staticcheck // as above
	writes, calledBy := map[string]bool{}, map[string][]string{}
	ast.Inspect(files, func(n ast.Node) bool {
		method, ok := n.(*ast.FuncDecl)
		if !ok || method.Recv == nil || len(method.Recv.List[0].Names) == 0 || method.Body == nil {
			return true
		}
		if _, pointer := method.Recv.List[0].Type.(*ast.StarExpr); !pointer {
			return true
		}
		// What is taken from the receiver into a variable is written through it too, as a pointer mostly is.
		parts, name := map[string]bool{method.Recv.List[0].Names[0].Name: true}, method.Name.Name
		ast.Inspect(method.Body, func(n ast.Node) bool {
			switch s := n.(type) {
			case *ast.AssignStmt:
				for i, to := range s.Lhs {
					writes[name] = writes[name] || s.Tok != token.DEFINE && belongsTo(to, parts)
					if variable, ok := to.(*ast.Ident); ok && len(s.Lhs) == len(s.Rhs) && belongsTo(s.Rhs[i], parts) {
						parts[variable.Name] = true
					}
				}
			case *ast.IncDecStmt:
				writes[name] = writes[name] || belongsTo(s.X, parts)
			case *ast.CallExpr:
				if called, ok := s.Fun.(*ast.SelectorExpr); ok && isOf(called.X, parts) {
					calledBy[called.Sel.Name] = append(calledBy[called.Sel.Name], name)
				}
			}
			return true
		})
		return true
	})
	for spread := true; spread; {
		spread = false
		for called, callers := range calledBy {
			for _, caller := range callers {
				if writes[called] && !writes[caller] {
					writes[caller], spread = true, true
				}
			}
		}
	}
	return writes
}

// belongsTo tells whether an expression is a part of one of these variables, which an assignment changes.
func belongsTo(e ast.Expr, variables map[string]bool) bool {
	if _, itself := e.(*ast.Ident); itself {
		return false
	}
	return isOf(e, variables)
}

// isOf tells whether an expression begins at one of these variables.
func isOf(e ast.Expr, variables map[string]bool) bool {
	switch x := e.(type) {
	case *ast.Ident:
		return variables[x.Name]
	case *ast.SelectorExpr:
		return isOf(x.X, variables)
	case *ast.IndexExpr:
		return isOf(x.X, variables)
	case *ast.StarExpr:
		return isOf(x.X, variables)
	case *ast.UnaryExpr:
		return isOf(x.X, variables)
	}
	return false
}

// calls are the methods that an operand calls, but not those of operands within it, or of functions that it passes on.
func calls(side ast.Expr) (all []*ast.SelectorExpr) {
	ast.Inspect(side, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			if called, ok := x.Fun.(*ast.SelectorExpr); ok {
				all = append(all, called)
			}
		}
		return true
	})
	return all
}
