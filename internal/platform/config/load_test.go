package config

import (
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/config/crd"
)

const header = "apiVersion: config.tideline.io/v1alpha1\nkind: Configuration\n"

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	c, err := Load("file", []byte(header))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Tiers).To(Equal(Tiers{
		{Name: "exploratory", Priority: 1000, SurplusPriority: -300, QoS: "Burstable", LongestRunSeconds: 259200, Default: true,
			Sizing: Sizing{90, 125, 115, "100m", "250Mi", ""}},
		{Name: "small-traffic", Priority: 10000, SurplusPriority: -200, QoS: "MemoryGuaranteed",
			Sizing: Sizing{95, 154, 130, "100m", "250Mi", ""}},
		{Name: "main-traffic", Priority: 100000, SurplusPriority: -100, QoS: "Guaranteed", Preempts: []string{"exploratory"},
			Sizing: Sizing{99, 200, 150, "100m", "250Mi", ""}},
	}))
	g.Expect(c.Accelerators).To(Equal(Accelerators{
		"nvidia.com/gpu": "nvidia.com/gpu.product", "nvidia.com/gpu.shared": "nvidia.com/gpu.product",
		"volcano.sh/vgpu-number": "nvidia.com/gpu.product", "amd.com/gpu": "amd.com/gpu.product-name",
	}))
	g.Expect(c.Claims).To(Equal(Claims{PlacementTimeoutSeconds: 60}))
	g.Expect(c.Limits).To(Equal(Limits{MaxWorkersPerJob: 4096, MaxGraceSeconds: 600}))
	g.Expect(c.Merges).To(Equal(Merges{
		Pools: []string{"tideline-merge"}, StrictPools: []string{}, Endpoints: []string{"aws"}, WaitingIntervalSeconds: 600,
		RunningIntervalSeconds: 30,
	}))
	g.Expect(c.Ledger).To(Equal(Ledger{RetentionDays: 400, UserLabel: "tideline.io/owner"}), "none is kept")
	g.Expect(c.Prometheus).To(Equal(DefaultPrometheus()))
	g.Expect(c.Prometheus.IsConfigured()).To(BeFalse())
	g.Expect(c.Concurrency).To(Equal(Concurrency{ElasticTrainingJobs: 8, MergePools: 4, Stores: 16}))
	g.Expect(c.ClientQPS).To(BeZero())
	g.Expect(c.ClientBurst).To(BeZero())
	g.Expect(c.ResyncPeriodSeconds).To(Equal(int32(36000)))
	g.Expect(c.Log).To(Equal(Log{Format: "json", Level: "info"}))
	g.Expect(c.Metrics.BindAddress).To(Equal("0"))
	g.Expect(c.Health.BindAddress).To(Equal(":8081"))
	g.Expect(c.Pprof.BindAddress).To(Equal("0"), "profiles are not served unasked")
	g.Expect(c.LeaderElection).To(Equal(LeaderElection{
		Enabled: true, LeaseDurationSeconds: 15, RenewDeadlineSeconds: 10, RetryPeriodSeconds: 2,
	}))
	g.Expect(c.Webhooks).To(Equal(Webhooks{Enabled: true, BindAddress: ":9443", Certificates: Certificates{
		Mode: "rotate", Directory: "/tmp/k8s-webhook-server/serving-certs",
	}}))
	g.Expect(c.validate()).To(BeEmpty())
	g.Expect(c).To(Equal(DefaultConfiguration()))
}

func TestWorkersAreLimitedAsInTheSchema(t *testing.T) {
	g := NewWithT(t)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(yaml.Unmarshal(crd.ElasticTrainingJob, definition)).To(Succeed())
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	g.Expect(*spec.Properties["maxReplicas"].Maximum).To(BeEquivalentTo(DefaultConfiguration().Limits.MaxWorkersPerJob))
}

// other differs from the defaults in every field.
func other() *Configuration {
	return &Configuration{
		APIVersion: APIVersion, Kind: Kind,
		Tiers: Tiers{
			{Name: "low", Priority: 1, SurplusPriority: -12, QoS: "Burstable", LongestRunSeconds: 60, MaxMinSurplusRunSeconds: 30,
				Sizing: Sizing{50, 101, 102, "1m", "1Mi", "2Ti"}},
			{Name: "high", Priority: 2, SurplusPriority: -11, QoS: "Guaranteed", Preempts: []string{"low"}, Default: true,
				Sizing: Sizing{51, 103, 104, "2m", "2Mi", "3Ti"}},
		},
		Accelerators:  Accelerators{"example.com/npu": "example.com/npu.product"},
		Sharing:       Sharing{{Resource: "example.com/part", CountsAs: "example.com/npu", Whole: 4, Times: "example.com/parts"}},
		DeviceClasses: DeviceClasses{"npu.example.com": "example.com/npu"},
		Claims:        Claims{PlacementTimeoutSeconds: 90},
		Limits:        Limits{MaxWorkersPerJob: 64, MaxGraceSeconds: 45},
		Merges: Merges{
			Pools: []string{"night"}, StrictPools: []string{"night"}, Endpoints: []string{}, LocalStores: "/stores",
			WaitingIntervalSeconds: 60, RunningIntervalSeconds: 5,
		},
		Reports:      Reports{AllowPlainMail: true, MailTimeoutSeconds: 6, MailRetrySeconds: 7},
		Reservations: Reservations{Image: "registry.example/pause:1"},
		HostPorts:    HostPorts{First: 30000, Last: 30999},
		Nodes:        Nodes{TaintSuspects: true},
		Pages: Pages{
			Host: "*.pages.example", Scheme: "http", Gateway: PagesGateway{Namespace: "infra", Name: "web"},
			Annotations: PageAnnotations{"example.com/auth": "sso"},
		},
		Ledger: Ledger{File: "/ledger.db", UserLabel: "user"},
		Prometheus: Prometheus{
			URL: "https://prometheus.example/metrics", CAFile: "/ca.crt", TokenFile: "/token", TimeoutSeconds: 5, IntervalSeconds: 600,
			Trusted: Trusted{
				Kubelet: []string{"cadvisor"}, KubeStateMetrics: []string{"ksm"}, DCGM: []string{"dcgm"}, DCGMNamespaces: []string{"gpu"},
			},
		},
		Concurrency:         Concurrency{ElasticTrainingJobs: 16, MergePools: 1, Stores: 2},
		ClientQPS:           50,
		ClientBurst:         100,
		ResyncPeriodSeconds: 3600,
		Log:                 Log{Format: "text", Level: "debug"},
		Metrics:             Metrics{BindAddress: ":8080"},
		Console:             Console{Enabled: true},
		Health:              Health{BindAddress: "0"},
		Pprof:               Pprof{BindAddress: "localhost:2"},
		LeaderElection: LeaderElection{
			Namespace: "ops", LeaseDurationSeconds: 5, RenewDeadlineSeconds: 4, RetryPeriodSeconds: 1,
		},
		Webhooks: Webhooks{
			BindAddress: "localhost:1", Certificates: Certificates{Mode: "files", Directory: "/certs"}, ClientCAFile: "/callers.crt",
		},
	}
}

func TestEveryFieldIsRead(t *testing.T) {
	g := NewWithT(t)
	want := other()
	differ(t, "", reflect.ValueOf(*DefaultConfiguration()), reflect.ValueOf(*want))
	content, err := yaml.Marshal(want)
	g.Expect(err).NotTo(HaveOccurred())
	c, err := Load("file", content)
	g.Expect(err).NotTo(HaveOccurred())
	for resource, label := range DefaultAccelerators() {
		want.Accelerators[resource] = label
	}
	want.DeviceClasses["gpu.nvidia.com"] = "nvidia.com/gpu"
	g.Expect(c).To(Equal(want))
}

// differ checks that no field of two values is the same, down to those that hold no fields.
func differ(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	for i, name := range FieldNames(a.Type()) {
		switch field := a.Field(i); {
		case field.Kind() == reflect.Struct:
			differ(t, path+name+".", field, b.Field(i))
		case path+name == "apiVersion" || path+name == "kind":
		case path+name == "pages.ingressClass": // TestPagesByIngress reads it: it excludes pages.gateway
		case path+name == "ledger.postgresDSNFile": // TestLedgerInPostgreSQL reads it: it excludes ledger.file
		case reflect.DeepEqual(field.Interface(), b.Field(i).Interface()):
			t.Errorf("%s%s does not differ from its default, so the test would not see that it is not read", path, name)
		}
	}
}

func TestLedgerInPostgreSQL(t *testing.T) {
	g := NewWithT(t)
	g.Expect(DefaultConfiguration().Ledger.IsConfigured()).To(BeFalse())
	c, err := Load("file", []byte(header+"ledger: {file: /ledger.db, retentionDays: 0}\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Ledger.IsConfigured()).To(BeTrue())
	c, err = Load("file", []byte(header+"ledger: {file: \"\", postgresDSNFile: /etc/dsn}\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Ledger).To(Equal(Ledger{PostgresDSNFile: "/etc/dsn", RetentionDays: 400, UserLabel: "tideline.io/owner"}))
	g.Expect(c.Ledger.IsConfigured()).To(BeTrue())
}

func TestWhatIsLeftOutOrEmptyHasItsDefault(t *testing.T) {
	for name, content := range map[string]string{
		"fields without a value": "tiers:\naccelerators:\nlog:\nwebhooks:\n  certificates:\n  bindAddress:\nclientQPS:\n",
		"one of several fields":  "log:\n  level: info\n",
		"a separator":            "---\n",
		"a document end":         "...\n",
	} {
		g := NewWithT(t)
		if strings.HasPrefix(content, "---") {
			content += header
		} else {
			content = header + content
		}
		c, err := Load("file", []byte(content))
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(c).To(Equal(DefaultConfiguration()), name)
	}
	g := NewWithT(t)
	c, err := Load("file", []byte(`{"apiVersion": "`+APIVersion+`", "kind": "`+Kind+`", "clientQPS": 1, "clientBurst": 1}`))
	g.Expect(err).NotTo(HaveOccurred(), "JSON is YAML")
	g.Expect(c.ClientQPS).To(Equal(int32(1)))
}

func TestFirstTierIsTheDefaultUnlessOneIsMarked(t *testing.T) {
	g := NewWithT(t)
	const low = "tiers:\n- {name: low, priority: 1, surplusPriority: -12}\n"
	const high = "- {name: high, priority: 2, surplusPriority: -11"
	c, err := Load("file", []byte(header+low+high+"}\n"))
	g.Expect(err).NotTo(HaveOccurred())
	tier, found := c.Tiers.FindTier("")
	g.Expect(found).To(BeTrue())
	g.Expect(tier).To(Equal(Tier{Name: "low", Priority: 1, SurplusPriority: -12, QoS: QoSBurstable, Default: true,
		Sizing: Sizing{95, 154, 130, "100m", "250Mi", ""}}),
		"which is Burstable and bounds nothing")
	c, err = Load("file", []byte(header+low+high+", default: true}\n"))
	g.Expect(err).NotTo(HaveOccurred())
	tier, _ = c.Tiers.FindTier("")
	g.Expect(tier.Name).To(Equal("high"))
}

// FuzzLoad: whatever a file has, it is refused in sentences, or what comes of it can be written to a file that means the same.
func FuzzLoad(f *testing.F) {
	for _, c := range wrongFiles {
		f.Add([]byte(c.content))
		f.Add([]byte(header + c.content))
	}
	whole, err := yaml.Marshal(other())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := Load("file", content)
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "file: ") || !strings.HasSuffix(line, ".") {
					t.Errorf("%q is no sentence about the file", line)
				}
			}
			return
		}
		written, err := yaml.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Load("again", written); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%s\nis read as %+v, %v", written, again, err)
		}
	})
}

func TestPagesByIngress(t *testing.T) {
	g := NewWithT(t)
	g.Expect(DefaultConfiguration().Pages.IsConfigured()).To(BeFalse(), "nothing is reached unless somebody configures it")
	c, err := Load("file", []byte(header+"pages: {host: pages.example, ingressClass: nginx}\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Pages).To(Equal(Pages{Host: "pages.example", Scheme: "https", IngressClass: "nginx", Annotations: PageAnnotations{}}))
	g.Expect(c.Pages.IsConfigured()).To(BeTrue())
	g.Expect(c.Pages.UsesGateway()).To(BeFalse())
	g.Expect(c.Pages.HostOf("a-1")).To(Equal("pages.example"), "one host for all")
	c.Pages.Host = "*.pages.example"
	g.Expect(c.Pages.HostOf("a-1")).To(Equal("a-1.pages.example"), "one for each job")
}
