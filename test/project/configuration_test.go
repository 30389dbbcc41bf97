package project

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/resource"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// mounted is the file that the operator's --config names, as the ConfigMap has it from which it is mounted, and that ConfigMap's
// name.
func mounted(t *testing.T, all []*resource.Resource) (content, name string) {
	t.Helper()
	var deployment appsv1.Deployment
	files := map[string]corev1.ConfigMap{}
	for _, r := range all {
		switch r.GetKind() {
		case "Deployment":
			decode(t, r, &deployment)
		case "ConfigMap":
			var file corev1.ConfigMap
			decode(t, r, &file)
			files[file.Namespace+"/"+file.Name] = file
		}
	}
	pod := deployment.Spec.Template.Spec
	path := ""
	for _, arg := range pod.Containers[0].Args {
		if value, is := strings.CutPrefix(arg, "--config="); is {
			path = value
		}
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		for _, volume := range pod.Volumes {
			if mount.Name == volume.Name && mount.MountPath == filepath.Dir(path) && volume.ConfigMap != nil {
				return files[deployment.Namespace+"/"+volume.ConfigMap.Name].Data[filepath.Base(path)], volume.ConfigMap.Name
			}
		}
	}
	t.Fatalf("nothing is mounted where --config=%s is", path)
	return "", ""
}

func TestOperatorIsGivenItsConfiguration(t *testing.T) {
	content, _ := mounted(t, build(t, "config/default"))
	installed, err := config.Load("configuration.yaml", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	want := config.DefaultConfiguration()
	want.Ledger.File = installed.Ledger.File
	if !reflect.DeepEqual(installed, want) {
		t.Errorf("%+v is installed, the defaults are %+v", installed, want)
	}
}

// The operator may not write to its own file system, so the ledger that it is told to keep is in a volume.
func TestLedgerHasAPlace(t *testing.T) {
	for name, all := range installations(t) {
		content, _ := mounted(t, all)
		installed, err := config.Load(name, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		var pod corev1.PodSpec
		for _, r := range all {
			if r.GetKind() == "Deployment" {
				pod = deployment(t, r).Spec.Template.Spec
			}
		}
		volume := ""
		for _, mount := range pod.Containers[0].VolumeMounts {
			if !mount.ReadOnly && strings.HasPrefix(installed.Ledger.File, mount.MountPath+"/") {
				volume = mount.Name
			}
		}
		volatile := slices.Contains([]string{"default with ha", "default with volatile-ledger", "default with everything"}, name)
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
			return v.Name == volume && (volatile && v.EmptyDir != nil || !volatile && hasClaim(all, v.PersistentVolumeClaim))
		}) {
			t.Errorf("%s: where %s is, there is no claim that it brings, and with ha or volatile-ledger no emptyDir",
				name, installed.Ledger.File)
		}
	}
}

// hasClaim tells whether an installation brings the claim of a volume.
func hasClaim(all []*resource.Resource, of *corev1.PersistentVolumeClaimVolumeSource) bool {
	return of != nil && slices.ContainsFunc(all, func(r *resource.Resource) bool {
		return r.GetKind() == "PersistentVolumeClaim" && r.GetName() == of.ClaimName
	})
}

// The kustomization that docs/configuration.md shows installs another file, under another name, so that the Deployment rolls.
func TestConfigurationCanBeReplaced(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```yaml\n(apiVersion: kustomize[^`]*)```").FindSubmatch(page)
	if shown == nil {
		t.Fatal("docs/configuration.md shows no kustomization")
	}
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	from, err := filepath.Rel(own, root)
	if err != nil {
		t.Fatal(err)
	}
	const mine = "apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\nlog: {level: debug}\n"
	for name, content := range map[string]string{
		"kustomization.yaml": strings.ReplaceAll(string(shown[1]), "github.com/tideline-io/tideline", from),
		"configuration.yaml": mine,
	} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, before := mounted(t, build(t, "config/default"))
	content, name := mounted(t, buildAt(t, own))
	if content != mine || name == before {
		t.Errorf("ConfigMap %s, formerly %s, has %q", name, before, content)
	}
}
