package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// markerPrefix begins the markers of API types, which are those of operator-sdk.
const markerPrefix = "operator-sdk:csv:customresourcedefinitions:"

// Docs is what the Go types of the API say that a schema does not.
type Docs struct {
	// Kinds by name of the type.
	Kinds map[string]KindDoc
	// Fields has the Go names of fields by name of the type and by name in JSON.
	Fields map[string]map[string]string
}

// KindDoc is what the markers of a kind say.
type KindDoc struct {
	// DisplayName for people.
	DisplayName string
	// Resources are the kinds of objects that belong to one of this kind.
	Resources []v1alpha1.APIResourceReference
}

// readDocs reads the Go files of a folder.
func readDocs(folder string) (Docs, error) {
	docs := Docs{Kinds: map[string]KindDoc{}, Fields: map[string]map[string]string{}}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return docs, err
	}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			return docs, err
		}
		if err := docs.add(name, source); err != nil {
			return docs, err
		}
	}
	return docs, nil
}

// add reads the types of one Go file.
func (d Docs) add(name string, source []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, declaration := range file.Decls {
		types, ok := declaration.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			spec := spec.(*ast.TypeSpec)
			if fields, ok := spec.Type.(*ast.StructType); ok {
				d.Fields[spec.Name.Name] = fieldNames(fields)
			}
			kind, err := kindDoc(types.Doc)
			if err != nil {
				return fmt.Errorf("%s: type %s: %w", name, spec.Name.Name, err)
			}
			d.Kinds[spec.Name.Name] = kind
		}
	}
	return nil
}

// fieldNames returns the Go names of the fields of a struct by their names in JSON.
func fieldNames(s *ast.StructType) map[string]string {
	names := map[string]string{}
	for _, field := range s.Fields.List {
		if field.Tag == nil || len(field.Names) == 0 {
			continue
		}
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		name, _, _ := strings.Cut(tag, ",")
		names[name] = field.Names[0].Name
	}
	return names
}

// resourceMarker is one {Kind,version,name}; the name is that of a CustomResourceDefinition, and empty for a kind of Kubernetes.
var resourceMarker = regexp.MustCompile(`\{(\w+),([\w./]+),"?([\w.]*)"?\}`)

// kindDoc reads the markers of a type. They may be spread over several lines.
func kindDoc(comment *ast.CommentGroup) (KindDoc, error) {
	var kind KindDoc
	if comment == nil {
		return kind, nil
	}
	for _, line := range comment.List {
		marker, ok := strings.CutPrefix(strings.TrimLeft(line.Text, "/ "), "+"+markerPrefix)
		if !ok {
			continue
		}
		key, value, _ := strings.Cut(marker, "=")
		switch key {
		case "displayName":
			kind.DisplayName = strings.Trim(value, `"`)
		case "resources":
			for _, match := range resourceMarker.FindAllStringSubmatch(value, -1) {
				kind.Resources = append(kind.Resources, v1alpha1.APIResourceReference{Kind: match[1], Version: match[2], Name: match[3]})
			}
		default:
			return kind, fmt.Errorf("marker +%s%s is not known", markerPrefix, key)
		}
	}
	return kind, nil
}
