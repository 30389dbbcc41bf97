package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	"github.com/operator-framework/operator-registry/pkg/lib/bundle"
	"github.com/sirupsen/logrus"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// serviceVersion has a shorter name here.
type serviceVersion = v1alpha1.ClusterServiceVersion

// newestKubernetes is the version up to which no API that the bundle uses may have been removed.
const newestKubernetes = "1.37"

// anyVersion is in the warning about a rule for RuntimeClasses. A rule names no version of an API, so the validator warns of all
// that ever had one that was removed; the operator asks for node.k8s.io/v1, which was not.
const anyVersion = `Migrate the API(s) for runtimeclasses: (["ClusterServiceVersion.Spec.InstallStrategy`

// validate returns every error and warning that `operator-sdk bundle validate` finds in a bundle with all its optional
// validators, and what operator-registry says when the bundle is put into a catalog.
func validate(folder string) []string {
	var findings []string
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	image := bundle.NewImageValidator(nil, logrus.NewEntry(logger), "bundle-objects")
	if err := image.ValidateBundleFormat(folder); err != nil {
		findings = append(findings, "format: "+err.Error())
	}
	loaded, err := manifests.GetBundleFromDir(folder)
	if err != nil {
		return append(findings, "load: "+err.Error())
	}
	if err := image.ValidateBundleContent(filepath.Join(folder, "manifests")); err != nil {
		findings = append(findings, "content: "+err.Error())
	}
	validators := append(slices.Clone(validation.DefaultBundleValidators), validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator, validation.AlphaDeprecatedAPIsValidator,
		validation.GoodPracticesValidator, validation.ObjectValidator)
	objects := append(loaded.ObjectsToValidate(), map[string]string{"k8s-version": newestKubernetes})
	for _, result := range validators.Validate(objects...) {
		for _, finding := range slices.Concat(result.Errors, result.Warnings) {
			if !strings.Contains(finding.Error(), anyVersion) {
				findings = append(findings, finding.Error())
			}
		}
	}
	return findings
}

func TestBundleIsValid(t *testing.T) {
	for _, finding := range validate(filepath.Join(repository, "bundle")) {
		t.Error(finding)
	}
}

// copyOf returns a copy of the bundle, to be broken. Its CRD has the schema of no pod template, which takes most of the time that
// validators need.
func copyOf(t *testing.T, small []byte) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(repository, "bundle"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, crdFile), small, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func withoutPodTemplates(t *testing.T) []byte {
	t.Helper()
	crd := committedCRD(t, crdFile)
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	for _, name := range []string{"template", "master"} {
		spec[name] = apiextensionsv1.JSONSchemaProps{Type: "object", Description: spec[name].Description}
	}
	content, err := manifestOf(crd)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Each of these is a way of breaking a bundle, and what must be said of it.
var broken = map[string]struct {
	change func(t *testing.T, folder string)
	want   string
}{
	"no CRD": {remove(crdFile), `owned CRD "tideline.io/v1beta1, Kind=ElasticTrainingJob" not found`},
	"CRD that nobody owns": {csv(func(c *serviceVersion) { c.Spec.CustomResourceDefinitions.Owned = nil }),
		"not defined in CSV"},
	"other version of the API": {csv(func(c *serviceVersion) {
		trainings(c).Version = "v1"
	}), `owned CRD "tideline.io/v1, Kind=ElasticTrainingJob" not found`},
	"kind without a description": {csv(func(c *serviceVersion) {
		trainings(c).Description = ""
	}), "has an empty description"},
	"CRD under a wrong name": {replace(crdFile, "name: elastictrainingjobs.tideline.io", "name: jobs.tideline.io"),
		`must be spec.names.plural+"."+spec.group`},
	"no ClusterServiceVersion": {remove(csvFile), "unable to find a csv"},
	"no version": {replace(csvFile, "\n  version: 0.1.0\n", "\n"),
		"csv.Spec.Version must be set"},
	"name without a version": {csv(func(c *serviceVersion) { c.Name = "tideline" }), "not following the versioning"},
	"no install mode":        {csv(func(c *serviceVersion) { c.Spec.InstallModes = nil }), "install modes not found"},
	"bad install mode": {csv(func(c *serviceVersion) {
		c.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeAllNamespaces}}
	}), "none of InstallModeTypes are supported"},
	"unknown category":   {annotate("categories", "AI"), `value "AI" is not in the set of standard categories`},
	"unknown capability": {annotate("capabilities", "Everything"), `"Everything" is not a valid capabilities level`},
	"no icon":            {csv(func(c *serviceVersion) { c.Spec.Icon = nil }), "csv.Spec.Icon not specified"},
	"icon of no type": {csv(func(c *serviceVersion) { c.Spec.Icon[0].MediaType = "image/x" }),
		"does not have a valid mediatype"},
	"no minKubeVersion": {csv(func(c *serviceVersion) { c.Spec.MinKubeVersion = "" }),
		"csv.Spec.minKubeVersion is not informed"},
	"bad minKubeVersion": {csv(func(c *serviceVersion) { c.Spec.MinKubeVersion = "1.29" }),
		"csv.Spec.MinKubeVersion has an invalid value"},
	"no provider": {csv(func(c *serviceVersion) { c.Spec.Provider.Name = "" }), "csv.Spec.Provider.Name not specified"},
	"maintainer without address": {csv(func(c *serviceVersion) { c.Spec.Maintainers[0].Email = "" }),
		"csv.Spec.Maintainers elements should contain both name and email"},
	"link to nowhere":     {csv(func(c *serviceVersion) { c.Spec.Links[0].URL = "tideline" }), "csv.Spec.Links url"},
	"no examples":         {annotate(annotationExamples, "[]"), "provided API should have an example annotation"},
	"examples of no JSON": {annotate(annotationExamples, "[{]"), "invalid example"},
	"example of a Pod":    {annotate(annotationExamples, `[{"apiVersion":"v1","kind":"Pod"}]`), "example must have a provided API"},
	"container without requests": {csv(func(c *serviceVersion) {
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Resources.Requests = nil
	}), "unable to find the resource requests"},
	"operator that makes CRDs": {csv(func(c *serviceVersion) {
		c.Spec.InstallStrategy.StrategySpec.ClusterPermissions[0].Rules = []rbacv1.PolicyRule{{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"create"},
		}}
	}), "CSV contains permissions to create CRD"},
	"ServiceAccount twice": {add("account.yaml", manifest("v1", "ServiceAccount", "tideline-controller-manager")),
		"invalid service account found in bundle"},
	"kind that OLM does not carry": {add("deployment.yaml", manifest("apps/v1", "Deployment", "other")),
		"Deployment is not supported type for registryV1 bundle"},
	"API that was removed": {add("budget.yaml", manifest("policy/v1beta1", "PodDisruptionBudget", "tideline")),
		"this bundle is using APIs which were deprecated and removed in v1.25"},
	"no annotations":    {remove("metadata/annotations.yaml"), "Could not find annotations file"},
	"no package":        {replace("metadata/annotations.yaml", labelPackage, "other"), `Missing annotation "` + labelPackage},
	"bad media type":    {replace("metadata/annotations.yaml", "registry+v1", "helm"), "Expecting annotation"},
	"bad channel":       {replace("metadata/annotations.yaml", ": candidate", ": mine"), `channel(s) ["mine"] are not following`},
	"manifest is empty": {add("empty.yaml", ""), "EOF"},
}

func TestBrokenBundlesAreRefused(t *testing.T) {
	small := withoutPodTemplates(t)
	for _, finding := range validate(copyOf(t, small)) {
		t.Errorf("before it is broken: %s", finding)
	}
	for name, test := range broken {
		t.Run(name, func(t *testing.T) {
			folder := copyOf(t, small)
			test.change(t, folder)
			findings := validate(folder)
			if !strings.Contains(strings.Join(findings, "\n"), test.want) {
				t.Errorf("nobody said %q, but:\n%s", test.want, strings.Join(findings, "\n"))
			}
		})
	}
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func manifest(apiVersion, kind, name string) string {
	return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n"
}

func add(name, content string) func(*testing.T, string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, "manifests", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// replace changes every place where a file has a text.
func replace(name, old, with string) func(*testing.T, string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		path := filepath.Join(folder, name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(string(content), old, with)
		if changed == string(content) {
			t.Fatalf("%s has no %q", name, old)
		}
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func annotate(key, value string) func(*testing.T, string) {
	return csv(func(c *serviceVersion) { c.Annotations[key] = value })
}

// csv changes the ClusterServiceVersion.
func csv(change func(*serviceVersion)) func(*testing.T, string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		c := readCSV(t, folder)
		change(c)
		content, err := manifestOf(c)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, csvFile)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
