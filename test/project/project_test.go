// Package project tests what surrounds the code: PROJECT and the manifests under config.
package project

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kubebuilder/v4/pkg/config"
	"sigs.k8s.io/kubebuilder/v4/pkg/config/store/yaml"
	_ "sigs.k8s.io/kubebuilder/v4/pkg/config/v3" // PROJECT is of this version
	"sigs.k8s.io/kubebuilder/v4/pkg/machinery"
	"sigs.k8s.io/kubebuilder/v4/pkg/model/resource"

	"github.com/tideline-io/tideline/api/v1beta1"
)

const repository = "../.."

// project loads PROJECT as the kubebuilder command does.
func project(t *testing.T) config.Config {
	t.Helper()
	store := yaml.New(machinery.Filesystem{FS: afero.NewBasePathFs(afero.NewOsFs(), repository)})
	if err := store.Load(); err != nil {
		t.Fatal(err)
	}
	return store.Config()
}

// kinds returns the kinds of the API, which are those that have a list, and their Go types.
func kinds(t *testing.T) map[schema.GroupVersionKind]reflect.Type {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	types := scheme.KnownTypes(v1beta1.GroupVersion)
	all := map[schema.GroupVersionKind]reflect.Type{}
	for kind, goType := range types {
		if _, ok := types[kind+"List"]; ok {
			all[v1beta1.GroupVersion.WithKind(kind)] = goType
		}
	}
	return all
}

func TestProjectListsTheAPI(t *testing.T) {
	project := project(t)
	resources, err := project.GetResources()
	if err != nil {
		t.Fatal(err)
	}
	api := kinds(t)
	for _, r := range resources {
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", r.Kind, err)
		}
		kind := schema.GroupVersionKind{Group: r.QualifiedGroup(), Version: r.Version, Kind: r.Kind}
		goType, ok := api[kind]
		if !ok {
			t.Errorf("PROJECT lists %s, which the API does not have", kind)
			continue
		}
		delete(api, kind)
		if r.Path != goType.PkgPath() {
			t.Errorf("%s: PROJECT gives %s, its type is in %s", r.Kind, r.Path, goType.PkgPath())
		}
		if !r.HasController() {
			t.Errorf("%s: PROJECT gives no controller", r.Kind)
		}
		checkCRD(t, r)
	}
	for kind := range api {
		t.Errorf("PROJECT does not list %s", kind)
	}
}

// checkCRD compares a resource of PROJECT with the CustomResourceDefinition that is installed.
func checkCRD(t *testing.T, r resource.Resource) {
	t.Helper()
	name := r.Plural + "." + r.QualifiedGroup()
	for _, node := range build(t, "config/crd") {
		if node.GetName() != name {
			continue
		}
		scope, err := node.GetString("spec.scope")
		if err != nil {
			t.Fatal(err)
		}
		if r.API.Namespaced != (scope == "Namespaced") {
			t.Errorf("%s: namespaced is %t in PROJECT, its scope is %s", r.Kind, r.API.Namespaced, scope)
		}
		if node.GetApiVersion() != "apiextensions.k8s.io/"+r.API.CRDVersion {
			t.Errorf("%s: PROJECT gives CRD version %s, the manifest is %s", r.Kind, r.API.CRDVersion, node.GetApiVersion())
		}
		return
	}
	t.Errorf("%s: config/crd has no %s", r.Kind, name)
}

func TestProjectLayout(t *testing.T) {
	project := project(t)
	if chain := project.GetPluginChain(); !slices.Equal(chain, []string{"go.kubebuilder.io/v4"}) {
		t.Errorf("layout %v", chain)
	}
	// The module's name is the path of its API package without the folder.
	var api v1beta1.ElasticTrainingJob
	module, _, _ := strings.Cut(reflect.TypeOf(api).PkgPath(), "/api/")
	if project.GetRepository() != module {
		t.Errorf("repo %s, the module is %s", project.GetRepository(), module)
	}
}
