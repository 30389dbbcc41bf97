// Package gatewayapi has the definitions of the Gateway API as its project releases them.
package gatewayapi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/test/testutil"
)

// ReadDefinitions reads the CustomResourceDefinitions of the standard channel of these resources, such as httproutes.
func ReadDefinitions(ctx context.Context, resources ...string) ([]*unstructured.Unstructured, error) {
	root, err := testutil.FindRepository(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "sigs.k8s.io/gateway-api")
	cmd.Dir = filepath.Join(root, "test", "tools", "gatewayapi")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("download the Gateway API: %w: %s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, resource := range resources {
		file := filepath.Join(module.Dir, "config", "crd", "standard", "gateway.networking.k8s.io_"+resource+".yaml")
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, definition); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, definition)
	}
	return all, nil
}
