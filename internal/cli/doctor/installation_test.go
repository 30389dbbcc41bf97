package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// installed is a cluster with an operator by kubectl, with everything on that can be judged.
func installed() Facts {
	f := healthy()
	cfg := config.DefaultConfiguration()
	cfg.Console.Enabled, cfg.Metrics.BindAddress = true, ":8443"
	cfg.Ledger.File, cfg.Prometheus.URL = "/var/lib/tideline/ledger.db", "http://prometheus.monitoring.svc:9090"
	f.Installed = &Installation{Image: "registry.example/tideline:1.0", ConfigMap: "tideline-configuration-1", Configuration: cfg,
		ReviewsTokens: true}
	f.Services = map[client.ObjectKey][]int32{{Namespace: "monitoring", Name: "prometheus"}: {9090}}
	f.Prometheuses = []client.ObjectKey{{Namespace: "monitoring", Name: "prometheus"}}
	return f
}

func findings(f Facts) []Finding { return ExamineFacts(f, configured(f, nil)) }

func TestInstalledClusterIsOneScreenOfOK(t *testing.T) {
	g := NewWithT(t)
	all := findings(installed())
	g.Expect(all).To(HaveEach(HaveField("Level", OK)))
	g.Expect(len(all)).To(BeNumerically("<", 22))
	var said []string
	for _, f := range all {
		said = append(said, f.What)
	}
	g.Expect(said).To(ContainElements(
		"The operator was installed by kubectl, and its image is registry.example/tideline:1.0.",
		"The console is on, and the operator may ask whose the tokens of its readers are.",
		"The ledger outlasts the operator's pod.",
		"The operator asks Prometheus by Service monitoring/prometheus, which is there.",
	))
}

func TestWhatIsWrongWithAnInstallationHasACommandThatMendsIt(t *testing.T) {
	release := func(f *Facts) { f.Installed.Release = "ml/tide" }
	for name, c := range map[string]struct {
		edit      []func(*Facts)
		level     Level
		says, run string
	}{
		"image": {
			[]func(*Facts){func(f *Facts) { f.Installed.Unpulled = []string{"tideline-1 (ImagePullBackOff)"} }}, Wrong,
			"The operator's image registry.example/tideline:1.0 cannot be had: tideline-1 (ImagePullBackOff).",
			"kubectl set image --namespace tideline-system deployment/tideline-controller-manager manager=REGISTRY/tideline:TAG",
		},
		"image by Helm": {
			[]func(*Facts){release, func(f *Facts) { f.Installed.Unpulled = []string{"tideline-1 (ErrImagePull)"} }}, Wrong,
			"cannot be had",
			"helm upgrade tide config/chart --namespace ml --reuse-values --set image.repository=REGISTRY/tideline,image.tag=TAG",
		},
		"other kinds": {
			[]func(*Facts){func(f *Facts) { f.OtherDefinitions = []string{"mergejobs.tideline.io"} }}, Warn,
			"of another version than this program: other fields or rules have mergejobs.tideline.io.",
			"kubectl apply --server-side --force-conflicts -k config/crd",
		},
		"objects in an earlier version of the API": {
			[]func(*Facts){func(f *Facts) { f.StoredBefore = []string{"mergejobs.tideline.io"} }}, Warn,
			"Objects of mergejobs.tideline.io may be stored in an earlier version of the API, which a later release will not have.",
			"tideline migrate-storage",
		},
		"other kinds by Helm": {
			[]func(*Facts){release, func(f *Facts) { f.OtherDefinitions = []string{"mergejobs.tideline.io"} }}, Warn, "of another version",
			"helm upgrade tide config/chart --namespace ml --reuse-values",
		},
		"console without tokens": {
			[]func(*Facts){func(f *Facts) { f.Installed.ReviewsTokens = false }}, Wrong,
			"The console is on, and the operator may not create tokenreviews, so that users cannot sign in.",
			"kubectl create clusterrolebinding tideline-reviews-tokens --clusterrole=system:auth-delegator " +
				"--serviceaccount=tideline-system:tideline-controller-manager",
		},
		"console without TLS, by a flag": {
			[]func(*Facts){func(f *Facts) { f.Installed.Args = []string{"run", "--metrics-secure=false"} }}, Wrong,
			"there is no server of metrics by HTTPS", "kubectl patch deployment --namespace tideline-system tideline-controller-manager " +
				`--type=json -p '[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--metrics-bind-address=:8443"},` +
				`{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--metrics-secure"}]'`,
		},
		"ledger in the pod": {
			[]func(*Facts){func(f *Facts) { f.Installed.Volatile = true }}, Warn,
			"The ledger is in the operator's pod and is lost with it",
			"kubectl apply --namespace tideline-system -f config/manager/claim.yaml && kubectl patch deployment --namespace " +
				`tideline-system tideline-controller-manager -p '{"spec":{"template":{"spec":{"volumes":[{"name":"data","emptyDir":null,` +
				`"persistentVolumeClaim":{"claimName":"tideline-ledger"}}]}}}}'`,
		},
		"Prometheus that is not there": {
			[]func(*Facts){func(f *Facts) { f.Services = nil }}, Wrong,
			"prometheus.url is http://prometheus.monitoring.svc:9090, and there is no Service monitoring/prometheus.",
			"kubectl get services --all-namespaces | grep -i prometheus",
		},
		"port of Prometheus": {
			[]func(*Facts){func(f *Facts) { f.Services[f.Prometheuses[0]] = []int32{80} }}, Wrong,
			"Service monitoring/prometheus has no port 9090, but [80]", "kubectl get services --all-namespaces | grep -i prometheus",
		},
		"Prometheus that is not told of": {
			[]func(*Facts){release, func(f *Facts) { f.Installed.Configuration.Prometheus.URL = "" }}, Warn,
			"Service monitoring/prometheus looks like one.", "helm upgrade tide config/chart --namespace ml --reuse-values --set " +
				"configuration.prometheus.url=http://prometheus.monitoring.svc:9090",
		},
		"certificate": {
			[]func(*Facts){func(f *Facts) { f.Certificate = "the CA in a ended on 2026-01-01" }}, Wrong,
			"No job can be created, because the API server does not trust the webhooks: the CA in a ended on 2026-01-01.",
			"kubectl delete secret --namespace tideline-system tideline-webhook-certs",
		},
		"certificate of others": {
			[]func(*Facts){func(f *Facts) { f.Certificate, f.OthersCertificate = "it ended", true }}, Wrong, "it ended",
			"kubectl describe --namespace tideline-system certificates,secrets,deployments",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := NewWithT(t), installed()
			for _, edit := range c.edit {
				edit(&f)
			}
			var found []Finding
			for _, finding := range findings(f) {
				if finding.Level != OK {
					found = append(found, finding)
				}
			}
			g.Expect(found).To(ConsistOf(And(HaveField("Level", c.level), HaveField("What", ContainSubstring(c.says)),
				HaveField("Run", c.run))))
		})
	}
}

// Whatever is found, a command stands below it.
func TestEachFindingHasACommand(t *testing.T) {
	g := NewWithT(t)
	command := regexp.MustCompile(`\b(kubectl|helm|make|vcctl) [a-z-]`)
	silence := time.Hour
	for _, f := range []Facts{
		{Denied: []string{"get pods"}, MissingKinds: []string{"PodGroup"}, UntrustedWebhooks: []string{"a"}, Operator: &Replicas{1, 0},
			MissingGuards: guards, ClaimUnbound: true, Scheduler: &Replicas{1, 0}},
		{VolcanoImage: "vc-scheduler:v1.2.3", MissingWebhooks: []string{"a"}, Queues: map[string]string{"default": "Closed"},
			LeaseSilence: &silence, Waiting: Waiting{Pods: 1, Silence: time.Hour}},
		{VolcanoImage: "vc-scheduler:v1.14.1", EvictsForGangs: true, Local: true, Denied: []string{"get pods"}, LeaseSilence: &silence},
	} {
		for _, finding := range findings(f) {
			if finding.Level == Wrong || finding.Level == Warn {
				g.Expect(command.MatchString(finding.Do+" "+finding.Run+" "+finding.Manifest) || finding.Manifest != "").
					To(BeTrue(), "%+v", finding)
			}
		}
	}
}

// clusterOf is a cluster with objects, whose API server allows everything.
func clusterOf(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		NewWithT(t).Expect(add(scheme)).To(Succeed())
	}
	review := func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		o.(*authorizationv1.SubjectAccessReview).Status.Allowed = true
		return nil
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{Create: review}).Build()
}

func TestInstallationIsReadFromItsDeployment(t *testing.T) {
	g := NewWithT(t)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "tideline-controller-manager",
		Annotations: map[string]string{"meta.helm.sh/release-name": "tide", "meta.helm.sh/release-namespace": "ml"}}}
	deployment.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "proxy"}, {Name: "manager", Image: "i:1", Args: []string{"run", "--console"}}},
		Volumes: []corev1.Volume{
			{Name: "configuration", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "c-1"}}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}
	file := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "c-1"}, Data: map[string]string{
		"configuration.yaml": "apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\nmerges: {pools: [mine]}\n",
	}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", Labels: map[string]string{
		"app.kubernetes.io/name": "tideline", "app.kubernetes.io/component": "manager"}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
	f := Facts{Namespace: "ml"}
	g.Expect(gatherInstallation(t.Context(), clusterOf(t, deployment, file, pod), &f)).To(Succeed())
	g.Expect(f.Installed).To(HaveValue(And(HaveField("Image", "i:1"), HaveField("Release", "ml/tide"), HaveField("Volatile", true),
		HaveField("Unpulled", []string{"p (ImagePullBackOff)"}), HaveField("ReviewsTokens", true))))
	g.Expect(configured(f, nil).Merges.Pools).To(Equal([]string{"mine"}), "the configuration that counts is the operator's own")
	value, given := f.Installed.flag("console")
	g.Expect(given && value == "true").To(BeTrue())

	none := Facts{Namespace: "other"}
	g.Expect(gatherInstallation(t.Context(), clusterOf(t, deployment), &none)).To(Succeed())
	g.Expect(none.Installed).To(BeNil())
	g.Expect(configured(none, nil)).To(Equal(config.DefaultConfiguration()))
}

func TestKindsOfAnotherVersionAreFound(t *testing.T) {
	g := NewWithT(t)
	var all []client.Object
	for _, content := range definitions {
		one := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(yaml.Unmarshal(content, one)).To(Succeed())
		// As the API server adds.
		one.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		all = append(all, one)
	}
	f := Facts{}
	g.Expect(gatherDefinitions(t.Context(), clusterOf(t, all...), &f)).To(Succeed())
	g.Expect(f.OtherDefinitions).To(BeEmpty())
	older := all[1].(*apiextensionsv1.CustomResourceDefinition)
	delete(older.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "tier")
	g.Expect(gatherDefinitions(t.Context(), clusterOf(t, all...), &f)).To(Succeed())
	g.Expect(f.OtherDefinitions).To(Equal([]string{"mergejobs.tideline.io"}))
	f.OtherDefinitions = nil
	g.Expect(gatherDefinitions(t.Context(), clusterOf(t), &f)).To(Succeed())
	g.Expect(f.OtherDefinitions).To(BeEmpty(), "what is not installed is told of elsewhere")
	g.Expect(f.StoredBefore).To(BeEmpty())
	older.Status.StoredVersions = []string{"v1alpha1", "v1beta1"}
	g.Expect(gatherDefinitions(t.Context(), clusterOf(t, all...), &f)).To(Succeed())
	g.Expect(f.StoredBefore).To(Equal([]string{"mergejobs.tideline.io"}))
}

func TestServicesOfPrometheus(t *testing.T) {
	g := NewWithT(t)
	service := func(namespace, name string, port int32, labels map[string]string) client.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}}}
	}
	f := Facts{}
	g.Expect(gatherServices(t.Context(), clusterOf(t,
		service("monitoring", "kube-prometheus-stack-prometheus", 9090, nil),
		service("monitoring", "prometheus-node-exporter", 9100, nil),
		service("kube-system", "metrics", 9090, map[string]string{"app.kubernetes.io/name": "prometheus"}),
		service("shop", "web", 9090, nil),
	), &f)).To(Succeed())
	g.Expect(f.Prometheuses).To(Equal([]client.ObjectKey{
		{Namespace: "kube-system", Name: "metrics"}, {Namespace: "monitoring", Name: "kube-prometheus-stack-prometheus"},
	}))
	for host, want := range map[string]string{
		"prometheus": "ml/prometheus", "p.monitoring": "monitoring/p", "p.monitoring.svc.cluster.local": "monitoring/p",
		"prometheus.example.org": "", "10.0.0.1": "", "localhost": "", "::1": "",
	} {
		key, inside := serviceOf(host, "ml")
		g.Expect(inside).To(Equal(want != ""), host)
		if inside {
			g.Expect(key.String()).To(Equal(want))
		}
	}
}

// signed is a certificate of a CA until a time, in PEM; without a CA it is one itself.
func signed(
	t *testing.T, until time.Time, ca *x509.Certificate, key *ecdsa.PrivateKey,
) ([]byte, *x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	g := NewWithT(t)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: until.String()}, NotAfter: until,
		IsCA: ca == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	if ca == nil {
		ca, key = template, own
	}
	content, err := x509.CreateCertificate(rand.Reader, template, ca, own.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	certificate, err := x509.ParseCertificate(content)
	g.Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: content}), certificate, own
}

func TestCertificatesOfTheWebhooks(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	ca, authority, key := signed(t, now.AddDate(9, 0, 0), nil, nil)
	ended, _, _ := signed(t, now.AddDate(0, 0, -1), nil, nil)
	served, _, _ := signed(t, now.AddDate(1, 0, 0), authority, key)
	late, _, _ := signed(t, now.AddDate(0, 0, -2), authority, key)
	other, _, _ := signed(t, now.AddDate(8, 0, 0), nil, nil)
	for want, c := range map[string]struct{ ca, served []byte }{
		"":                                {ca, served},
		"the CA in w is no certificate":   {[]byte("x"), served},
		"the CA in w ended on 2026-11-26": {ended, nil},
		"the certificate in Secret tideline-webhook-certs ended on 2026-11-25":   {ca, late},
		"the certificate in Secret tideline-webhook-certs is not of the CA in w": {other, served},
	} {
		g.Expect(certificateProblem(map[string][]byte{"w": c.ca}, c.served, now)).To(Equal(want))
	}
	g.Expect(certificateProblem(map[string][]byte{"w": nil}, served, now)).To(BeEmpty(), "a CA that is missing is told of elsewhere")
	g.Expect(certificateProblem(map[string][]byte{"w": ca}, nil, now)).To(BeEmpty(), "what others keep is not known")
}
