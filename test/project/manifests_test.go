package project

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// build returns what `kustomize build` makes of a folder of the repository.
func build(t *testing.T, folder string) []*resource.Resource {
	t.Helper()
	return buildAt(t, filepath.Join(repository, folder))
}

func buildAt(t *testing.T, folder string) []*resource.Resource {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	return built.Resources()
}

// builds keeps what was built, because the CRD takes most of a second each time.
var builds sync.Map

// installation returns what a kustomization as users write theirs makes of config/default with components.
func installation(t *testing.T, components ...string) []*resource.Resource {
	t.Helper()
	key := strings.Join(components, " ")
	if built, ok := builds.Load(key); ok {
		return built.([]*resource.Resource)
	}
	const from = "github.com/tideline-io/tideline/config"
	lines := []string{"resources:", "- " + from + "/default", "components:"}
	for _, component := range components {
		lines = append(lines, "- "+from+"/components/"+component)
	}
	built := buildOwn(t, strings.Join(lines, "\n"))
	builds.Store(key, built)
	return built
}

// buildOwn builds a kustomization of a user's own, with this checkout for what it names of the repository.
func buildOwn(t *testing.T, kustomization string) []*resource.Resource {
	t.Helper()
	own := t.TempDir()
	folder, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	from, err := filepath.Rel(own, folder)
	if err != nil {
		t.Fatal(err)
	}
	content := strings.NewReplacer("github.com/tideline-io/tideline/", from+"/", "?ref=main", "").Replace(kustomization)
	if err := os.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return buildAt(t, own)
}

// installations are all that can be installed: config/default alone, with each component, and with all of them.
func installations(t *testing.T) map[string][]*resource.Resource {
	t.Helper()
	folders, err := os.ReadDir(filepath.Join(repository, "config", "components"))
	if err != nil {
		t.Fatal(err)
	}
	var components []string
	all := map[string][]*resource.Resource{"default": installation(t)}
	for _, folder := range folders {
		components = append(components, folder.Name())
		all["default with "+folder.Name()] = installation(t, folder.Name())
	}
	all["default with everything"] = installation(t, components...)
	return all
}

// decode turns a resource into its Go type and refuses fields that the type does not have.
func decode(t *testing.T, r *resource.Resource, into any) {
	t.Helper()
	manifest, err := r.AsYAML()
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(manifest, into); err != nil {
		t.Fatalf("%s %s: %v", r.GetKind(), r.GetName(), err)
	}
}

// Pods name the classes that internal/platform/config computes, and the doctor prints; a class that is installed with another
// value would reverse who gives way to whom.
func TestPriorityClassesAreThoseOfTheTiers(t *testing.T) {
	want := map[string]schedulingv1.PriorityClass{}
	for _, class := range config.DefaultTiers().PriorityClasses() {
		want[class.Name] = class
	}
	for _, r := range build(t, "config/scheduling") {
		var installed schedulingv1.PriorityClass
		decode(t, r, &installed)
		if !reflect.DeepEqual(installed, want[installed.Name]) {
			t.Errorf("%+v is installed, the operator expects %+v", installed, want[installed.Name])
		}
		delete(want, installed.Name)
	}
	for name := range want {
		t.Errorf("%s is not installed", name)
	}
}

func TestEverythingIsInstalledUnderOurName(t *testing.T) {
	const namespace = "tideline-system"
	clusterScoped := []string{
		"Namespace", "CustomResourceDefinition", "PriorityClass", "Queue", "ClusterRole", "ClusterRoleBinding",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding",
	}
	for _, r := range installations(t)["default with everything"] {
		if r.GetKind() != "CustomResourceDefinition" && !strings.HasPrefix(r.GetName(), "tideline-") {
			t.Errorf("%s %s: its name does not begin with tideline-", r.GetKind(), r.GetName())
		}
		want := namespace
		if slices.Contains(clusterScoped, r.GetKind()) {
			want = ""
		}
		if r.GetNamespace() != want {
			t.Errorf("%s %s is in namespace %q, not %q", r.GetKind(), r.GetName(), r.GetNamespace(), want)
		}
		const label = "app.kubernetes.io/name"
		if name := r.GetLabels()[label]; name != "tideline" {
			t.Errorf("%s %s has label %s=%q", r.GetKind(), r.GetName(), label, name)
		}
	}
}

// A binding that names no role or account that is installed gives no right, and nothing says so.
func TestBindingsBindWhatIsInstalled(t *testing.T) {
	for name, all := range installations(t) {
		present := map[string]bool{}
		for _, r := range all {
			present[r.GetKind()+"/"+r.GetNamespace()+"/"+r.GetName()] = true
		}
		bindings := 0
		for _, r := range all {
			if !strings.HasSuffix(r.GetKind(), "RoleBinding") {
				continue
			}
			bindings++
			// Role and cluster role bindings have the same fields.
			var binding rbacv1.RoleBinding
			decode(t, r, &binding)
			role := binding.RoleRef.Kind + "/" + binding.Namespace + "/" + binding.RoleRef.Name
			if !present[role] {
				t.Errorf("%s: %s binds %s, which is not installed", name, r.GetName(), role)
			}
			for _, subject := range binding.Subjects {
				if account := subject.Kind + "/" + subject.Namespace + "/" + subject.Name; !present[account] {
					t.Errorf("%s: %s binds %s, which is not installed", name, r.GetName(), account)
				}
			}
		}
		if name == "default" && bindings != 3 {
			t.Errorf("%d bindings, want those of the manager, in the cluster and in its namespace, and of its leader election", bindings)
		}
	}
}

// Every kind can be used by those who may edit and view a namespace; one of the whole cluster by those who divide it. What things
// cost is for those who answer for it alone.
func TestUserRolesCoverEveryKind(t *testing.T) {
	writers := map[string]string{}
	covered := map[string][]string{}
	for _, r := range installation(t) {
		switch r.GetKind() {
		case "CustomResourceDefinition":
			plural, err := r.GetString("spec.names.plural")
			if err != nil {
				t.Fatal(err)
			}
			scope, err := r.GetString("spec.scope")
			if err != nil {
				t.Fatal(err)
			}
			writers[plural] = "tideline-edit"
			switch {
			case plural == "costreports":
				writers[plural] = "tideline-reports"
			case scope == "Cluster":
				writers[plural] = "tideline-profiles"
			}
		case "ClusterRole":
			var role rbacv1.ClusterRole
			decode(t, r, &role)
			for _, rule := range role.Rules {
				covered[role.Name] = append(covered[role.Name], rule.Resources...)
			}
		}
	}
	for plural, writer := range writers {
		for _, role := range []string{writer, "tideline-view"} {
			want := role == writer || writer != "tideline-reports"
			if slices.Contains(covered[role], plural) != want {
				t.Errorf("%s covers %v: %s is among them, %t is wanted", role, covered[role], plural, want)
			}
		}
	}
}

// What Kubernetes adds to its own roles is what their names promise, and nothing else of ours is in them.
func TestUserRolesAreAggregated(t *testing.T) {
	want := map[string][]string{"tideline-edit": {"admin", "edit"}, "tideline-view": {"admin", "edit", "view"}}
	for _, r := range installations(t)["default with everything"] {
		if r.GetKind() != "ClusterRole" {
			continue
		}
		var into []string
		for label, value := range r.GetLabels() {
			if role, found := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); found && value == "true" {
				into = append(into, role)
			}
		}
		slices.Sort(into)
		if !slices.Equal(into, want[r.GetName()]) {
			t.Errorf("%s is added to %v, want %v", r.GetName(), into, want[r.GetName()])
		}
		delete(want, r.GetName())
	}
	for name := range want {
		t.Errorf("there is no %s", name)
	}
}

func TestSamplesHaveNoUnknownField(t *testing.T) {
	for _, r := range build(t, "config/samples") {
		switch r.GetKind() {
		case v1beta1.ElasticTrainingJobKind:
			decode(t, r, &v1beta1.ElasticTrainingJob{})
		case v1beta1.MergeJobKind:
			decode(t, r, &v1beta1.MergeJob{})
		case v1beta1.ResourceQuotaProfileKind:
			decode(t, r, &v1beta1.ResourceQuotaProfile{})
		case v1beta1.CostReportKind:
			decode(t, r, &v1beta1.CostReport{})
		default:
			t.Errorf("%s is a %s", r.GetName(), r.GetKind())
		}
		if r.GetApiVersion() != v1beta1.GroupVersion.String() {
			t.Errorf("%s is of %s", r.GetName(), r.GetApiVersion())
		}
	}
}

// askedAbout is what a webhook is asked about, each with its operation: creations and changes of one kind, or changes of
// approvals of both kinds of jobs. Conditions keep all other changes from it, which an operator that is down must not hold up.
func askedAbout(t *testing.T, w admissionregistrationv1.ValidatingWebhook) []string {
	t.Helper()
	operations, kinds := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}, 1
	reads := []string{"request.operation == 'CREATE' || ", "object.spec", "oldObject.spec"}
	if of, isOfApprovals := map[string]string{
		"approve.tideline.io": v1beta1.AnnotationApprove, "approval.tideline.io": v1beta1.AnnotationApproval,
	}[w.Name]; isOfApprovals {
		operations, kinds = operations[1:], 2
		reads = []string{"'" + of + "' in object.metadata.annotations", "'" + of + "' in oldObject.metadata.annotations"}
	}
	if n := len(w.MatchConditions); n != 1 {
		t.Errorf("%s has %d conditions, want 1", w.Name, n)
	}
	for _, c := range w.MatchConditions {
		for _, read := range reads {
			if !strings.Contains(c.Expression, read) {
				t.Errorf("%s is called where %s, which does not look whether %s", w.Name, c.Expression, read)
			}
		}
	}
	var asked []string
	for _, rule := range w.Rules {
		if !slices.Equal(rule.APIGroups, []string{v1beta1.GroupVersion.Group}) || len(rule.Resources) != kinds ||
			!slices.Equal(rule.Operations, operations) {
			t.Errorf("%s is asked about %v of %v in %v", w.Name, rule.Operations, rule.Resources, rule.APIGroups)
		}
		for _, resource := range rule.Resources {
			for _, operation := range operations {
				asked = append(asked, string(operation)+" "+resource)
			}
		}
	}
	return asked
}

// A webhook that is called where nobody serves it refuses every job, and one that is asked about more than Tideline's objects can
// stop a cluster.
func TestWebhooksReachTheOperatorAndConcernItsObjectsOnly(t *testing.T) {
	all := installation(t)
	var called []admissionregistrationv1.ValidatingWebhook // mutating ones have the same fields, and one more
	var service corev1.Service
	var manager appsv1.Deployment
	for _, r := range all {
		switch r.GetKind() {
		case "MutatingWebhookConfiguration":
			var configuration admissionregistrationv1.MutatingWebhookConfiguration
			decode(t, r, &configuration)
			for _, w := range configuration.Webhooks {
				called = append(called, admissionregistrationv1.ValidatingWebhook{
					Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, SideEffects: w.SideEffects,
					MatchConditions: w.MatchConditions,
				})
			}
		case "ValidatingWebhookConfiguration":
			var configuration admissionregistrationv1.ValidatingWebhookConfiguration
			decode(t, r, &configuration)
			called = append(called, configuration.Webhooks...)
		case "Service":
			decode(t, r, &service)
		case "Deployment":
			decode(t, r, &manager)
		}
	}
	asked := map[string]int{}
	for _, w := range called {
		if to := w.ClientConfig.Service; to == nil || to.Name != service.Name || to.Namespace != service.Namespace {
			t.Errorf("%s is called at %v, the Service is %s", w.Name, to, service.Name)
		}
		for _, what := range askedAbout(t, w) {
			asked[what]++
		}
		if *w.FailurePolicy != admissionregistrationv1.Fail || *w.SideEffects != admissionregistrationv1.SideEffectClassNone {
			t.Errorf("%s: failurePolicy %s, sideEffects %s", w.Name, *w.FailurePolicy, *w.SideEffects)
		}
	}
	if want := map[string]int{
		"CREATE elastictrainingjobs": 2, "CREATE mergejobs": 2, "UPDATE elastictrainingjobs": 4, "UPDATE mergejobs": 4,
		"CREATE resourcequotaprofiles": 1, "UPDATE resourcequotaprofiles": 1,
	}; !maps.Equal(asked, want) {
		t.Errorf("webhooks are asked about %v, want one that checks profiles, and for jobs one that sets and one that checks, "+
			"and two for approvals", asked)
	}
	for key, value := range service.Spec.Selector {
		if manager.Spec.Template.Labels[key] != value {
			t.Errorf("the Service selects %s=%s, which the operator's pod does not have", key, value)
		}
	}
	ports := manager.Spec.Template.Spec.Containers[0].Ports
	if !slices.ContainsFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == service.Spec.Ports[0].TargetPort.StrVal }) {
		t.Errorf("the operator's pod has no port %v", &service.Spec.Ports[0].TargetPort)
	}
}
