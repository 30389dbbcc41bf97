package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// render returns what Helm makes of the chart with its default values, as one text of YAML documents.
func render(repository, namespace string) (string, error) {
	loaded, err := loader.LoadDir(filepath.Join(repository, "config", "chart"))
	if err != nil {
		return "", err
	}
	release := common.ReleaseOptions{Name: "tideline", Namespace: namespace, IsInstall: true}
	with, err := util.ToRenderValues(loaded, nil, release, common.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(loaded, with)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(name) == ".yaml" {
			fmt.Fprintf(&all, "---\n%s\n", files[name])
		}
	}
	return all.String(), nil
}
