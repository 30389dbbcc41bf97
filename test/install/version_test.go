package install

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/upgrade"
)

// version is a version of Tideline.
type version struct{ upgrade.Version }

// thisRoot is the source tree that is tested.
const thisRoot = "../.."

// build builds the operator that is tested into a folder.
func build(ctx context.Context, folder string) version {
	GinkgoHelper()
	program, err := testutil.BuildOperator(ctx, folder)
	Expect(err).NotTo(HaveOccurred(), "the operator is built")
	return version{upgrade.Version{Name: "this version", Root: thisRoot, Program: program}}
}

// installation is what a kustomization makes of a version.
type installation struct {
	version   version
	objects   []*unstructured.Unstructured
	arguments []string // of the operator, without its command
	former    bool     // where the version has no command
}

// render returns what kustomize makes of a version's config/default with components, in a kustomization as users write theirs.
func (v version) render(ctx context.Context, components ...string) installation {
	GinkgoHelper()
	own := GinkgoT().TempDir()
	root, err := filepath.Abs(v.Root)
	Expect(err).NotTo(HaveOccurred(), "there is a source tree")
	from, err := filepath.Rel(own, filepath.Join(root, "config"))
	Expect(err).NotTo(HaveOccurred(), "the source tree has a path")
	lines := []string{"resources:", "- " + from + "/default", "components:"}
	for _, component := range components {
		lines = append(lines, "- "+from+"/components/"+component)
	}
	Expect(os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(strings.Join(lines, "\n")), 0o600)).To(Succeed())

	kustomize := strings.TrimSpace(string(output(ctx, nil, nil, filepath.Join(thisRoot, "test", "tools", "build.sh"), "kustomize")))
	objects, err := testutil.ParseObjects(output(ctx, nil, nil, kustomize, "build", own))
	Expect(err).NotTo(HaveOccurred(), "kustomize makes YAML")
	return v.installation(objects)
}

// renderChart returns what Helm makes of a version's chart, and the namespace, which Helm creates.
func (v version) renderChart(ctx context.Context) installation {
	GinkgoHelper()
	text := output(ctx, nil, nil, "go", "-C", filepath.Join(v.Root, "test", "tools", "chart"), "run", ".",
		"-repository=../../..", "-render="+testutil.OperatorNamespace)
	objects, err := testutil.ParseObjects(text)
	Expect(err).NotTo(HaveOccurred(), "Helm makes YAML")
	home := &unstructured.Unstructured{}
	home.SetAPIVersion("v1")
	home.SetKind("Namespace")
	home.SetName(testutil.OperatorNamespace)
	return v.installation(append([]*unstructured.Unstructured{home}, objects...))
}

// installation is what objects install.
func (v version) installation(objects []*unstructured.Unstructured) installation {
	GinkgoHelper()
	args := arguments(objects)
	former := args[0] != "run"
	if !former {
		args = args[1:]
	}
	return installation{v, objects, args, former}
}

// arguments are those of the operator's Deployment, with paths of files that were written instead of mounted.
func arguments(objects []*unstructured.Unstructured) []string {
	GinkgoHelper()
	var deployment appsv1.Deployment
	files := map[string]map[string]string{}
	for _, o := range objects {
		switch o.GetKind() {
		case "Deployment":
			convert(o, &deployment)
		case "ConfigMap":
			var file corev1.ConfigMap
			convert(o, &file)
			files[file.Name] = file.Data
		}
	}
	pod := deployment.Spec.Template.Spec
	Expect(pod.Containers).To(HaveLen(1), "the Deployment runs the operator")
	all := pod.Containers[0].Args
	for _, volume := range pod.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		dir := GinkgoT().TempDir()
		for name, content := range files[volume.ConfigMap.Name] {
			Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed(), "the file is there")
		}
		for _, mount := range pod.Containers[0].VolumeMounts {
			for i := range all {
				if mount.Name == volume.Name {
					all[i] = strings.Replace(all[i], mount.MountPath, dir, 1)
				}
			}
		}
	}
	return all
}

func convert(from *unstructured.Unstructured, into any) {
	GinkgoHelper()
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into)).To(Succeed(), "%s is one", from.GetKind())
}

// output runs a command that must succeed, and returns what it prints.
func output(ctx context.Context, environment []string, input []byte, name string, arguments ...string) []byte {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Env, cmd.Stdin = append(os.Environ(), environment...), bytes.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	Expect(cmd.Run()).To(Succeed(), "%s %s: %s", filepath.Base(name), strings.Join(arguments, " "), &stderr)
	return stdout.Bytes()
}
