package cluster

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestCacheKeyNamesVersionAndPlatform(t *testing.T) {
	got, want := cacheKey("etcd", "v3.6.8"), "etcd-v3.6.8-"+runtime.GOOS+"-"+runtime.GOARCH
	if got != want {
		t.Errorf("cacheKey = %q, want %q", got, want)
	}
}

func TestRequiredVersion(t *testing.T) {
	goMod := filepath.Join(t.TempDir(), "go.mod")
	content := `module example.com/x

require example.com/single v1.0.0

require (
	example.com/longer/name v1.1.0
	example.com/longer v1.2.0 // indirect
	example.com/replaced v0.0.0
)

replace example.com/other => example.com/other v9.9.9
`
	if err := os.WriteFile(goMod, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for module, want := range map[string]string{
		"example.com/single": "v1.0.0",
		"example.com/longer": "v1.2.0",
	} {
		if got, err := requiredVersion(goMod, module); err != nil || got != want {
			t.Errorf("requiredVersion(%s) = %q, %v, want %q", module, got, err, want)
		}
	}
	if _, err := requiredVersion(goMod, "example.com/other"); err == nil {
		t.Error("a module that is only replaced has a version")
	}
}

// Each program must be a tool of its module, so that go mod tidy keeps what it
// needs.
func TestModulesNameTheirPrograms(t *testing.T) {
	for _, p := range append(clusterParts, kubectlPart, kubeletPart, corednsPart, TrainingOperator, NotebookController,
		objectStorePart, Prometheus, OLM) {
		folders := []string{p.folder()}
		if p.variable != "" {
			folders = nil
			versions, err := p.versions("modules")
			if err != nil {
				t.Fatal(err)
			}
			for _, version := range versions {
				folders = append(folders, p.name+"-"+version)
			}
		}
		for _, folder := range folders {
			namesPrograms(t, p, folder)
		}
	}
}

func namesPrograms(t *testing.T, p Part, folder string) {
	t.Helper()
	goMod := filepath.Join("modules", folder, "go.mod")
	version, err := requiredVersion(goMod, p.module)
	if err != nil {
		t.Error(err)
	}
	if folder != p.name && folder != p.name+"-"+strings.TrimPrefix(version, "v") {
		t.Errorf("%s requires %s %s", goMod, p.module, version)
	}
	content, err := os.ReadFile(goMod)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(content))
	for _, prog := range p.programs {
		// A program of the folder's own module needs no requirement.
		if prog.pkg != "." && !slices.Contains(fields, prog.pkg) {
			t.Errorf("%s has no tool %s", goMod, prog.pkg)
		}
	}
}

func TestKubernetesVersionFlags(t *testing.T) {
	flags := kubernetesVersionFlags("v1.36.3")
	for _, want := range []string{".gitVersion=v1.36.3", ".gitMajor=1", ".gitMinor=36"} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q does not set %s", flags, want)
		}
	}
}

// A program of setup-envtest is taken in the same minor version only.
func TestPrebuiltPrograms(t *testing.T) {
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	script := "#!/bin/sh\necho Kubernetes v1.36.0\necho v1.35.9\n"
	if err := os.WriteFile(filepath.Join(assets, "kube-apiserver"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	got := kubernetesPart.prebuilt(t.Context(), "v1.36.3")
	if len(got) != 1 || got["kube-apiserver"] != filepath.Join(assets, "kube-apiserver") {
		t.Errorf("of v1.36.3 the programs %v are taken, want kube-apiserver", got)
	}
	if got := kubernetesPart.prebuilt(t.Context(), "v1.35.1"); len(got) != 0 {
		t.Errorf("of v1.35.1 the programs %v are taken, want none", got)
	}
}

func TestStagesAreNarrowed(t *testing.T) {
	stage := `
kind: Stage
spec:
  selector:
    matchExpressions:
    - {key: .status.phase, operator: In, values: [Running]}
  next: {statusTemplate: "phase: Succeeded"}
`
	got, err := narrow([]byte(stage), narrowed[podCompleteStage])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".status.phase", ManualAnnotation, `"batch/v1"`, "phase: Succeeded"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in the stage %s", want, got)
		}
	}
	if _, err := narrow([]byte("kind: Stage"), nil); err == nil {
		t.Error("a stage without a selector was accepted: it would apply to every object")
	}
}
