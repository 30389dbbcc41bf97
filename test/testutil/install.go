package testutil

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The operator's service account, with the role that users install.
const (
	OperatorNamespace      = "tideline-system"
	OperatorServiceAccount = "tideline-controller-manager"
)

const rootPackage = "github.com/tideline-io/tideline"

// manifests are the parts of config/ that the operator needs in a cluster when it runs outside of it, in the order in which
// they are created.
var manifests = []string{
	"manager/namespace.yaml", "crd/bases/*.yaml", "scheduling/*.yaml", "pool/*.yaml", "rbac/*.yaml", "guard/*.yaml",
}

// Install creates what `kubectl apply -k config/default` does except the operator's Deployment, and waits until the API
// server serves the CRDs. Where Volcano is missing, there is no Queue to create.
func (w *World) Install(ctx context.Context) error {
	objects, err := Manifests(ctx, manifests...)
	if err != nil {
		return err
	}
	for _, o := range objects {
		switch err := w.Client.Create(ctx, o); {
		case err == nil, apierrors.IsAlreadyExists(err), o.GetKind() == "Queue" && meta.IsNoMatchError(err):
		default:
			return fmt.Errorf("install %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			if err := w.awaitServed(ctx, o.GetName()); err != nil {
				return err
			}
		}
	}
	return nil
}

// ApplyComponent applies a component of config/components, as an admin who wants what it is for.
func ApplyComponent(s *Scenario, name string) {
	s.t.Helper()
	objects, err := Manifests(s.ctx, "components/"+name+"/*.yaml")
	s.must(err, "read component "+name)
	for _, o := range objects {
		if err := s.Client.Create(s.ctx, o); !apierrors.IsAlreadyExists(err) {
			s.must(err, "apply component "+name)
		}
	}
}

// Manifests reads the objects of files under config/, which are given as patterns, without kustomizations.
func Manifests(ctx context.Context, patterns ...string) ([]*unstructured.Unstructured, error) {
	root, err := FindRepository(ctx)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(root, "config", filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("config/%s matches no file (%w)", pattern, err)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue
			}
			read, err := readObjects(file)
			if err != nil {
				return nil, err
			}
			objects = append(objects, read...)
		}
	}
	return objects, nil
}

// ShippedMemory returns the limit of memory that config gives the operator, in bytes, and the environment with which its process
// collects garbage as it does there, whatever that of the test says.
func ShippedMemory(ctx context.Context) (limit uint64, env []string, err error) {
	objects, err := Manifests(ctx, "manager/deployment.yaml")
	if err != nil {
		return 0, nil, err
	}
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, deployment); err != nil {
			return 0, nil, err
		}
		container := &deployment.Spec.Template.Spec.Containers[0]
		env = []string{"GOGC=100"} // Go's default.
		for _, v := range container.Env {
			if v.Name == "GOMEMLIMIT" {
				env = append(env, v.Name+"="+v.Value)
			}
		}
		limit = uint64(container.Resources.Limits.Memory().Value())
	}
	if limit == 0 || len(env) < 2 {
		return 0, nil, errors.New("config/manager/deployment.yaml limits no memory, or has no GOMEMLIMIT")
	}
	return limit, env, nil
}

func readObjects(file string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	objects, err := ParseObjects(content)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return objects, nil
}

// ParseObjects reads the objects of a manifest.
func ParseObjects(manifest []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096); ; {
		o := &unstructured.Unstructured{}
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(o.Object) > 0:
			objects = append(objects, o)
		}
	}
}

// awaitServed waits until the API server serves a CRD's resources.
func (w *World) awaitServed(ctx context.Context, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return false, err
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait until CRD %s is established: %w", name, err)
	}
	return nil
}

// FindRepository returns the root of the source tree that the test was built from.
func FindRepository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", rootPackage).Output()
	if err != nil {
		return "", fmt.Errorf("find the source tree of %s: %w", rootPackage, err)
	}
	return strings.TrimSpace(string(out)), nil
}
