package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const (
	repository = "../../.."
	// Files of a bundle.
	csvFile = "manifests/tideline.clusterserviceversion.yaml"
	crdFile = "manifests/tideline.io_elastictrainingjobs.yaml"
)

// rendered are the manifests that `make bundle` hands to this program.
var rendered = sync.OnceValues(func() ([]byte, error) {
	const build = `"$(test/tools/build.sh kustomize)" build config/manifests`
	command := exec.Command("bash", "-c", build)
	command.Dir = repository
	command.Stderr = os.Stderr
	return command.Output()
})

// input is what `make bundle` makes the bundle from.
func input(t *testing.T) Input {
	t.Helper()
	manifests, err := rendered()
	if err != nil {
		t.Fatal(err)
	}
	in, err := read(repository, bytes.NewReader(manifests))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// readCSV reads the ClusterServiceVersion of a bundle as it lies in a folder.
func readCSV(t *testing.T, folder string) *v1alpha1.ClusterServiceVersion {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, csvFile))
	if err != nil {
		t.Fatal(err)
	}
	csv := &v1alpha1.ClusterServiceVersion{}
	if err := yaml.UnmarshalStrict(content, csv); err != nil {
		t.Fatal(err)
	}
	return csv
}

func committedCSV(t *testing.T) *v1alpha1.ClusterServiceVersion {
	t.Helper()
	return readCSV(t, filepath.Join(repository, "bundle"))
}

// Whoever changes a manifest, a sample or a type must not leave the bundle behind.
func TestBundleIsWhatTheGeneratorMakes(t *testing.T) {
	want, err := Generate(input(t))
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"bundle.Dockerfile"}
	for _, folder := range []string{"manifests", "metadata"} {
		names, err := filepath.Glob(filepath.Join(repository, "bundle", folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			paths = append(paths, "bundle/"+folder+"/"+filepath.Base(name))
		}
	}
	for _, path := range paths {
		content, err := os.ReadFile(filepath.Join(repository, path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(content, want[path]) {
			t.Errorf("%s is not what is generated: run make bundle", path)
		}
		delete(want, path)
	}
	for path := range want {
		t.Errorf("%s is missing: run make bundle", path)
	}
}

// A console shows fields by their descriptors. A field that is added to the Go type gets one, with words for people.
func TestEveryFieldHasItsDescriptor(t *testing.T) {
	docs, err := readDocs(filepath.Join(repository, "api", "v1beta1"))
	if err != nil {
		t.Fatal(err)
	}
	csv := committedCSV(t)
	for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
		described := map[string]map[string]descriptor{owned.Kind + "Spec": {}, owned.Kind + "Status": {}}
		for _, d := range owned.SpecDescriptors {
			described[owned.Kind+"Spec"][d.Path] = descriptor(d)
		}
		for _, d := range owned.StatusDescriptors {
			described[owned.Kind+"Status"][d.Path] = descriptor(d)
		}
		for goType, descriptors := range described {
			fields := docs.Fields[goType]
			if len(fields) < 4 {
				t.Errorf("%s has %d fields: were they read?", goType, len(fields))
			}
			for field, name := range fields {
				d := descriptors[field]
				if strings.ReplaceAll(d.DisplayName, " ", "") != name || len(d.Description) < 20 || !strings.HasSuffix(d.Description, ".") {
					t.Errorf("%s of %s: display name %q, description %q", field, goType, d.DisplayName, d.Description)
				}
			}
			if len(descriptors) != len(fields) {
				t.Errorf("%s has %d fields and %d descriptors", goType, len(fields), len(descriptors))
			}
		}
	}
}

func TestExamplesAreTheSamples(t *testing.T) {
	var examples []*unstructured.Unstructured
	if err := json.Unmarshal([]byte(committedCSV(t).Annotations[annotationExamples]), &examples); err != nil {
		t.Fatal(err)
	}
	byName := map[string]map[string]any{}
	for _, example := range examples {
		byName[example.GetName()] = example.Object
	}
	files, err := filepath.Glob(filepath.Join(repository, "config", "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		samples, err := decode(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		for _, sample := range samples {
			if !reflect.DeepEqual(byName[sample.GetName()], sample.Object) {
				t.Errorf("%s: the example %s of the bundle is not this", file, sample.GetName())
			}
			delete(byName, sample.GetName())
		}
	}
	for name := range byName {
		t.Errorf("example %s is not among the samples", name)
	}
	if first := examples[0].GetName(); first != "resnet" {
		t.Errorf("consoles would offer %s first, want the smallest sample", first)
	}
}

// Mirrors copy what relatedImages lists, and nothing else.
func TestEveryImageIsListed(t *testing.T) {
	csv := committedCSV(t)
	listed := []string{}
	for _, image := range csv.Spec.RelatedImages {
		listed = append(listed, image.Image)
	}
	want := "ghcr.io/tideline-io/tideline:v" + csv.Spec.Version.String()
	if !slices.Equal(listed, []string{want}) || csv.Annotations[annotationImage] != want {
		t.Errorf("related images %v and annotation %s, want %s", listed, csv.Annotations[annotationImage], want)
	}
	for _, deployment := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		pod := deployment.Spec.Template.Spec
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			if !slices.Contains(listed, container.Image) {
				t.Errorf("container %s runs %s, which is not in relatedImages", container.Name, container.Image)
			}
		}
	}
}

// The operator of the bundle has the rights of the operator of config/default, but for those on certificates, which OLM keeps:
// OLM grants in all namespaces what a bundle asks for in the operator's own, and of Secrets no more must be among that than
// to read those that MergeJobs name.
func TestRightsAreThoseOfTheDefaultWithoutCertificates(t *testing.T) {
	install := committedCSV(t).Spec.InstallStrategy.StrategySpec
	granted := map[string]bool{}
	for kind, permissions := range map[string][]v1alpha1.StrategyDeploymentPermissions{
		kindClusterRole: install.ClusterPermissions, kindRole: install.Permissions,
	} {
		for _, permission := range permissions {
			for _, rule := range permission.Rules {
				granted[kind+" "+rule.String()] = true
				reads := slices.Equal(rule.Verbs, []string{"get"})
				configures := slices.ContainsFunc(rule.Resources, func(r string) bool {
					return strings.HasSuffix(r, "webhookconfigurations")
				})
				if slices.Contains(rule.Resources, "secrets") && !reads || configures {
					t.Errorf("the bundle grants %v on %v", rule.Verbs, rule.Resources)
				}
			}
		}
	}
	left := 0
	for _, file := range []string{"role.yaml", "leader_election_role.yaml"} {
		content, err := os.ReadFile(filepath.Join(repository, "config", "rbac", file))
		if err != nil {
			t.Fatal(err)
		}
		roles, err := decode(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range roles {
			var role rbacv1.ClusterRole
			if err := convert(o, &role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				if key := o.GetKind() + " " + rule.String(); granted[key] {
					delete(granted, key)
				} else {
					left++
				}
			}
		}
	}
	if left != 4 {
		t.Errorf("the bundle leaves out %d rules, want 4: two on webhook configurations and two on Secrets", left)
	}
	for rule := range granted {
		t.Errorf("the bundle grants more than config/rbac: %s", rule)
	}
}

// A console lists, below a job, objects of the kinds that the kind names: those are the ones that the operator may create.
func TestOwnedKindsAreThoseThatTheOperatorCreates(t *testing.T) {
	created := map[string]bool{}
	for _, file := range []string{"rbac/role.yaml", "components/ssh-keys/role.yaml", "components/job-network-policy/role.yaml"} {
		content, err := os.ReadFile(filepath.Join(repository, "config", file))
		if err != nil {
			t.Fatal(err)
		}
		roles, err := decode(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range roles {
			if o.GetKind() != kindClusterRole {
				continue
			}
			var role rbacv1.ClusterRole
			if err := convert(o, &role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				// A review is a question, which the API server keeps no object of.
				if !slices.Contains(rule.Verbs, "create") || slices.Contains(rule.APIGroups, "authorization.k8s.io") {
					continue
				}
				for _, resource := range rule.Resources {
					created[resource] = true
				}
			}
		}
	}
	listed := map[string]bool{}
	for _, owned := range committedCSV(t).Spec.CustomResourceDefinitions.Owned {
		for _, r := range owned.Resources {
			plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Version: r.Version, Kind: r.Kind})
			listed[plural.Resource] = true
		}
	}
	if !maps.Equal(created, listed) {
		t.Errorf("the operator may create %v, and the owned kinds list %v", created, listed)
	}
}

// OLM mounts the certificate where controller-runtime looks for it by default.
func TestOperatorTakesItsCertificateFromOLM(t *testing.T) {
	csv := committedCSV(t)
	deployment := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	manager := deployment.Spec.Template.Spec.Containers[0]
	if !slices.Contains(manager.Args, "--webhook-certs=files") {
		t.Errorf("the operator's arguments are %v, so that it would make certificates itself", manager.Args)
	}
	kinds := []v1alpha1.WebhookAdmissionType{}
	for _, w := range csv.Spec.WebhookDefinitions {
		kinds = append(kinds, w.Type)
		served := false
		for _, port := range manager.Ports {
			served = served || port.Name == w.TargetPort.StrVal
		}
		if w.DeploymentName != deployment.Name || !served || w.ContainerPort != 443 || *w.WebhookPath == "" {
			t.Errorf("%s is called at port %v of %s, path %v", w.GenerateName, w.TargetPort, w.DeploymentName, *w.WebhookPath)
		}
	}
	want := []v1alpha1.WebhookAdmissionType{
		v1alpha1.MutatingAdmissionWebhook, v1alpha1.MutatingAdmissionWebhook, v1alpha1.MutatingAdmissionWebhook,
		v1alpha1.ValidatingAdmissionWebhook, v1alpha1.ValidatingAdmissionWebhook, v1alpha1.ValidatingAdmissionWebhook,
		v1alpha1.ValidatingAdmissionWebhook,
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("webhooks %v, want one that sets and one that checks for each kind of job and for approvals, and one that "+
			"checks profiles", kinds)
	}
}

func TestImageOfTheBundleSaysWhatItsFilesSay(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "bundle.Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if label, ok := strings.CutPrefix(strings.TrimSpace(line), "LABEL "); ok {
			key, value, _ := strings.Cut(label, "=")
			labels[key] = value
		}
	}
	var file struct {
		Annotations map[string]string `json:"annotations"`
	}
	content, err = os.ReadFile(filepath.Join(repository, "bundle", "metadata", "annotations.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		t.Fatal(err)
	}
	if len(labels) < 6 || !reflect.DeepEqual(labels, file.Annotations) {
		t.Errorf("labels %v\nannotations %v", labels, file.Annotations)
	}
}

// Consoles show nothing for an icon that is no image.
func TestIconIsAPicture(t *testing.T) {
	icon := committedCSV(t).Spec.Icon[0]
	content, err := base64.StdEncoding.DecodeString(icon.Data)
	if err != nil {
		t.Fatal(err)
	}
	var picture struct {
		XMLName xml.Name
		ViewBox string     `xml:"viewBox,attr"`
		Paths   []struct{} `xml:"path"`
	}
	if err := xml.Unmarshal(content, &picture); err != nil {
		t.Fatal(err)
	}
	name := xml.Name{Space: "http://www.w3.org/2000/svg", Local: "svg"}
	if picture.XMLName != name || picture.ViewBox != "0 0 256 256" || len(picture.Paths) == 0 || icon.MediaType != "image/svg+xml" {
		t.Errorf("the icon of type %s is %+v", icon.MediaType, picture)
	}
}
