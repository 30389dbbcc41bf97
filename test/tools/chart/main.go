// Command chart makes the generated files of the Helm chart in config/chart, so that the chart installs what kustomize does.
//
//	chart [-repository=FOLDER] [-render=NAMESPACE]
//
// It builds config/default alone and with each of config/components, and turns what it gets into templates: what a component adds
// or changes stands under the value that turns it on. The same manifests make the same files. With -render it makes no files, and
// prints what Helm would install in a namespace.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	repository := flag.String("repository", ".", "folder of the repository")
	namespace := flag.String("render", "", "print what Helm makes of the chart for this `namespace`")
	flag.Parse()
	var err error
	if *namespace != "" {
		var text string
		text, err = render(*repository, *namespace)
		fmt.Print(text)
	} else {
		err = run(*repository)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(repository string) error {
	in, err := read(repository)
	if err != nil {
		return err
	}
	files, err := generate(in)
	if err != nil {
		return err
	}
	return write(filepath.Join(repository, "config", "chart"), files)
}

// read builds what the chart is made from.
func read(repository string) (input, error) {
	folders, err := os.ReadDir(filepath.Join(repository, "config", "components"))
	if err != nil {
		return input{}, err
	}
	in := input{With: map[string][]object{}}
	for _, folder := range folders {
		in.Components = append(in.Components, folder.Name())
	}
	if in.Base, err = build(repository); err != nil {
		return input{}, err
	}
	for _, component := range in.Components {
		if in.With[component], err = build(repository, component); err != nil {
			return input{}, err
		}
	}
	in.Configuration, err = os.ReadFile(filepath.Join(repository, "config", "manager", "configuration.yaml"))
	return in, err
}

// build returns what kustomize makes of config/default with components.
func build(repository string, components ...string) ([]object, error) {
	own, err := os.MkdirTemp("", "tideline-chart-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(own) }()
	config, err := filepath.Abs(filepath.Join(repository, "config"))
	if err != nil {
		return nil, err
	}
	from, err := filepath.Rel(own, config)
	if err != nil {
		return nil, err
	}
	lines := []string{"resources:", "- " + from + "/default", "components:"}
	for _, component := range components {
		lines = append(lines, "- "+from+"/components/"+component)
	}
	if err := os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), own)
	if err != nil {
		return nil, fmt.Errorf("build config/default with %v: %w", components, err)
	}
	var objects []object
	for _, r := range built.Resources() {
		manifest, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		objects = append(objects, object{Kind: r.GetKind(), Namespace: r.GetNamespace(), Name: r.GetName(), YAML: string(manifest)})
	}
	return objects, nil
}

// write replaces the chart's generated files. Those of objects that are gone go.
func write(chart string, files map[string][]byte) error {
	if err := os.RemoveAll(filepath.Join(chart, "templates", generatedFolder)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(chart, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
