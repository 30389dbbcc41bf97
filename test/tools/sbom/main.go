// Sbom writes the software bill of materials of a Go program, in the JSON of CycloneDX, to standard output: the modules that the
// linker recorded in the program, with their checksums, and Go's standard library. It has no time and no serial number, so that
// the same program always has the same bill.
//
//	sbom PROGRAM
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "Usage: sbom PROGRAM")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read what %s was built from: %w", program, err)
	}
	return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill(info))
}

// bill is the bill of a program.
func bill(info *debug.BuildInfo) *cyclonedx.BOM {
	version := info.Main.Version
	if stamped := stamp(info, "main.version"); stamped != "" {
		version = stamped
	}
	program := module(info.Main.Path, version, "")
	program.Type = cyclonedx.ComponentTypeApplication

	components := []cyclonedx.Component{module("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, dependency := range info.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		components = append(components, module(dependency.Path, dependency.Version, dependency.Sum))
	}
	uses := make([]string, 0, len(components))
	for _, component := range components {
		uses = append(uses, component.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &program}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &uses}}
	return bom
}

// module is a module as a component; sum is its line in go.sum, if it has one.
func module(path, version, sum string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	component := cyclonedx.Component{
		BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url,
	}
	if sum != "" {
		component.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: sum}}
	}
	return component
}

// stamp is what the linker was told by -X of a variable, or nothing if the program does not tell how it was linked.
func stamp(info *debug.BuildInfo, variable string) string {
	for _, setting := range info.Settings {
		if _, after, found := strings.Cut(setting.Value, "-X "+variable+"="); setting.Key == "-ldflags" && found {
			value, _, _ := strings.Cut(after, " ")
			return strings.Trim(value, `"'`)
		}
	}
	return ""
}
