package project

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kustomize/api/resource"
)

// named returns the one object of a kind and name.
func named(t *testing.T, all []*resource.Resource, kind, name string) *resource.Resource {
	t.Helper()
	i := slices.IndexFunc(all, func(r *resource.Resource) bool { return r.GetKind() == kind && r.GetName() == name })
	if i < 0 {
		t.Fatalf("there is no %s %s", kind, name)
	}
	return all[i]
}

const manager = "tideline-controller-manager"

// Two operators that both act would undo each other's work, and a budget that lets nobody leave holds up every drain.
func TestHighAvailability(t *testing.T) {
	all := installation(t, "ha")
	d := deployment(t, named(t, all, "Deployment", manager))
	pod := d.Spec.Template
	if *d.Spec.Replicas != 2 || !slices.Contains(pod.Spec.Containers[0].Args, "--leader-elect") {
		t.Errorf("%d replicas with %v", *d.Spec.Replicas, pod.Spec.Containers[0].Args)
	}
	if len(pod.Spec.TopologySpreadConstraints) == 0 {
		t.Error("both may be on one node")
	}
	for _, spread := range pod.Spec.TopologySpreadConstraints {
		if !selects(t, spread.LabelSelector, pod.Labels) || spread.WhenUnsatisfiable != corev1.ScheduleAnyway {
			t.Errorf("spread over %s: %+v", spread.TopologyKey, spread)
		}
	}
	var budget policyv1.PodDisruptionBudget
	decode(t, named(t, all, "PodDisruptionBudget", manager), &budget)
	if !selects(t, budget.Spec.Selector, pod.Labels) || budget.Namespace != d.Namespace {
		t.Errorf("the budget is for %v in %s, the pods are %v", budget.Spec.Selector, budget.Namespace, pod.Labels)
	}
	if budget.Spec.MinAvailable != nil || budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the budget lets %v leave of %d", budget.Spec.MaxUnavailable, *d.Spec.Replicas)
	}
}

func selects(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return !s.Empty() && s.Matches(labels.Set(set))
}

// The certificate is for the name by which the API server calls, is where the operator looks for it, and its CA reaches the API
// server; the operator itself may touch no Secret, and no configuration of a webhook.
func TestCertManagerMakesTheCertificate(t *testing.T) {
	all := installation(t, "cert-manager")
	certificate := named(t, all, "Certificate", "tideline-webhook")
	text := func(path string) string {
		value, err := certificate.GetFieldValue(path)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := value.(string)
		if !ok {
			t.Fatalf("%s of the certificate is %v", path, value)
		}
		return s
	}
	// The CA stays when the certificate is renewed.
	signer, err := named(t, all, "Issuer", text("spec.issuerRef.name")).GetString("spec.ca.secretName")
	if err != nil {
		t.Fatal(err)
	}
	if kept, err := named(t, all, "Certificate", "tideline-ca").GetString("spec.secretName"); err != nil || kept != signer {
		t.Errorf("the issuer signs by Secret %s, the CA is in %s (%v)", signer, kept, err)
	}
	hosts, err := certificate.GetSlice("spec.dnsNames")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Mutating", "Validating"} {
		var configuration admissionregistrationv1.ValidatingWebhookConfiguration // of mutating ones, what they share
		manifest := named(t, all, kind+"WebhookConfiguration", "tideline-"+strings.ToLower(kind)+"-webhook")
		if from := manifest.GetAnnotations()["cert-manager.io/inject-ca-from"]; from != "tideline-system/"+certificate.GetName() {
			t.Errorf("%s has the CA of %q", manifest.GetName(), from)
		}
		if kind == "Mutating" {
			continue
		}
		decode(t, manifest, &configuration)
		for _, w := range configuration.Webhooks {
			to := w.ClientConfig.Service
			if host := to.Name + "." + to.Namespace + ".svc"; !slices.Contains(hosts, any(host)) {
				t.Errorf("the certificate is for %v, the API server calls %s", hosts, host)
			}
		}
	}
	pod := deployment(t, named(t, all, "Deployment", manager)).Spec.Template.Spec
	container := pod.Containers[0]
	mount := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
		return slices.Contains(container.Args, "--webhook-cert-dir="+m.MountPath)
	})
	if mount < 0 || !slices.Contains(container.Args, "--webhook-certs=files") {
		t.Fatalf("the operator runs with %v and finds at %+v what it needs", container.Args, container.VolumeMounts)
	}
	kept := text("spec.secretName")
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
		return v.Name == container.VolumeMounts[mount].Name && v.Secret != nil && v.Secret.SecretName == kept &&
			!ptr.Deref(v.Secret.Optional, false)
	}) {
		t.Errorf("the operator mounts %+v of %+v, the certificate is in %s", container.VolumeMounts, pod.Volumes, kept)
	}
	for _, r := range all {
		if !strings.HasSuffix(r.GetKind(), "Role") {
			continue
		}
		if strings.Contains(r.MustYaml(), "webhookconfigurations") {
			t.Errorf("%s %s may change webhook configurations, which only who makes the certificate needs", r.GetKind(), r.GetName())
		}
		if rights := rightsOn(t, r, "secrets"); len(rights) > 0 && !slices.Equal(rights, []string{"get"}) {
			t.Errorf("%s %s may %v secrets, which only who makes the certificate needs", r.GetKind(), r.GetName(), rights)
		}
	}
}

// Whoever has webhooks of their own in the same kustomization keeps their CA.
func TestCertManagerLeavesOtherWebhooksAlone(t *testing.T) {
	other := t.TempDir()
	for file, content := range map[string]string{
		"kustomization.yaml": "resources: [other.yaml]\n",
		"other.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n" +
			"metadata: {name: other}\n",
	} {
		if err := os.WriteFile(filepath.Join(other, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const from = "github.com/tideline-io/tideline/config"
	all := buildOwn(t, strings.Join([]string{
		"resources:", "- " + from + "/default", "- ../" + filepath.Base(other), "components:", "- " + from + "/components/cert-manager",
	}, "\n"))
	if found := named(t, all, "ValidatingWebhookConfiguration", "other").GetAnnotations(); len(found) > 0 {
		t.Errorf("it has annotations %v", found)
	}
}

const installationPage = "docs/installation.md"

func readPage(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// shownKustomization is the one that the page on installation shows.
func shownKustomization(t *testing.T) string {
	t.Helper()
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(readPage(t, installationPage))
	if shown == nil {
		t.Fatalf("%s shows no kustomization", installationPage)
	}
	return shown[1]
}

func TestInstallationPageShowsWhatBuilds(t *testing.T) {
	all := buildOwn(t, shownKustomization(t))
	d := deployment(t, named(t, all, "Deployment", manager))
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example/tideline:dev" || *d.Spec.Replicas != 2 {
		t.Errorf("%d replicas of image %s", *d.Spec.Replicas, image)
	}
	egress := named(t, all, "NetworkPolicy", manager).MustYaml()
	if !strings.Contains(egress, "port: 6443") || !strings.Contains(egress, "port: 16443") {
		t.Errorf("the operator may call\n%s", egress)
	}
	page := readPage(t, installationPage)
	for name := range installations(t) {
		if component, found := strings.CutPrefix(name, "default with "); found && component != "everything" &&
			!strings.Contains(page, "| `config/components/"+component+"` |") {
			t.Errorf("the page does not say what component %s adds", component)
		}
	}
}
