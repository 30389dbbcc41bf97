package promquery

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/config"
)

func TestQueries(t *testing.T) {
	g := NewWithT(t)
	const pods = `namespace="ads",pod=~"ctr-0|ctr-1"`
	const containers = pods + `,container!="",container!="POD",image!=""`
	const by = "max by (namespace,pod,container) ("
	asked := []Query{
		{CPU, false, by + `rate(container_cpu_usage_seconds_total{` + containers + `,cpu=~"total|"}[5m]))`},
		{ThrottledShare, false, by + `rate(container_cpu_cfs_throttled_periods_total{` + containers + `}[5m])) / ` +
			by + `rate(container_cpu_cfs_periods_total{` + containers + `}[5m]))`},
		{WorkingSet, false, by + `max_over_time(container_memory_working_set_bytes{` + containers + `}[5m]))`},
		{MemoryLimit, false, by + `max_over_time(container_spec_memory_limit_bytes{` + containers + `}[5m])) or ` +
			by + `max_over_time(kube_pod_container_resource_limits{` + pods + `,container!="",resource="memory"}[5m]))`},
		{OOMEvents, false, `max by (namespace,pod,container,id) (max_over_time(container_oom_events_total{` + containers + `}[5m]))`},
	}
	b := Batch{Namespace: "ads", Pods: []string{"ctr-0", "ctr-1"}}
	g.Expect(BatchQueries(b, config.Trusted{})).To(Equal(asked))
	b.Accelerated = []string{"ctr-1"}
	const plain, exported = `{namespace="ads",pod=~"ctr-1"}[5m]))`, `{exported_namespace="ads",exported_pod=~"ctr-1"}[5m]))`
	const byDevice, byExported = "max by (namespace,pod,UUID,gpu,GPU_I_ID) (",
		"max by (exported_namespace,exported_pod,UUID,gpu,GPU_I_ID) ("
	g.Expect(BatchQueries(b, config.Trusted{})).To(Equal(append(asked,
		Query{EngineActive, false, byDevice + "avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE" + plain},
		Query{EngineActive, true, byExported + "avg_over_time(DCGM_FI_PROF_GR_ENGINE_ACTIVE" + exported},
		Query{Utilization, false, byDevice + "avg_over_time(DCGM_FI_DEV_GPU_UTIL" + plain},
		Query{Utilization, true, byExported + "avg_over_time(DCGM_FI_DEV_GPU_UTIL" + exported},
		Query{FramebufferUsed, false, byDevice + "max_over_time(DCGM_FI_DEV_FB_USED" + plain},
		Query{FramebufferUsed, true, byExported + "max_over_time(DCGM_FI_DEV_FB_USED" + exported},
	)))
}

func TestQueriesAreToTrustedTargets(t *testing.T) {
	g := NewWithT(t)
	trusted := config.Trusted{
		Kubelet: []string{"kubelet", "c.advisor"}, KubeStateMetrics: []string{"ksm"}, DCGM: []string{"dcgm"},
		DCGMNamespaces: []string{"gpu"},
	}
	b := Batch{Namespace: "ads", Pods: []string{"ctr-0"}, Accelerated: []string{"ctr-0"}}
	for _, q := range BatchQueries(b, trusted) {
		for _, selector := range regexp.MustCompile(`\w+{[^}]*}`).FindAllString(q.Expr, -1) {
			switch {
			case strings.HasPrefix(selector, "container_"):
				g.Expect(selector).To(ContainSubstring(`,job=~"kubelet|c\\.advisor"`))
			case strings.HasPrefix(selector, "kube_"):
				g.Expect(selector).To(ContainSubstring(`,job=~"ksm"`))
			case q.Exported:
				g.Expect(selector).To(HaveSuffix(`,job=~"dcgm",namespace=~"gpu"}`))
			default:
				g.Expect(selector).To(HaveSuffix(`,job=~"dcgm"}`))
			}
		}
	}
}

// hostile are names that no pod has, because Kubernetes takes none of them.
var hostile = []string{
	`"`, `\`, `\"`, `"}`, `"} or vector(1) #`, "a|b", "a.c", ".*", ".+", "(", ")", "[a-z]", "a{2}", "^a$", "a\nb", "a\x00b", "`",
	"'", "$1", "%s", "\u00fc", "\u2028", "\U0001f4a9", "\\d", "(?i)a", "", " ", "a", "ab", "ac", "abc", strings.Repeat("x", 300),
}

// Whatever names there are, a query asks for just these: its text ends where it should, and the expression matches no other.
func TestQueriesAskForTheseNamesOnly(t *testing.T) {
	for seed := range uint64(50) {
		g := NewWithT(t)
		r := rand.New(rand.NewPCG(seed, 1)) // the same names each time
		asked := make([]string, 1+r.IntN(5))
		for i := range asked {
			asked[i] = hostile[r.IntN(len(hostile))] + hostile[r.IntN(len(hostile))]
		}
		written := anyOf(asked)
		text, err := strconv.Unquote(written) // PromQL escapes as Go does
		g.Expect(err).NotTo(HaveOccurred(), "%q", asked)
		g.Expect(written).NotTo(ContainSubstring("\n"), "it is one line")
		expression, err := regexp.Compile("^(?s:" + text + ")$") // as Prometheus anchors it
		g.Expect(err).NotTo(HaveOccurred(), "%q", asked)
		for _, a := range hostile {
			for _, b := range hostile {
				if expression.MatchString(a+b) != slices.Contains(asked, a+b) {
					t.Errorf("%q is asked for or not by %s, which is for %q", a+b, written, asked)
				}
			}
		}
		namespace := BatchQueries(Batch{Namespace: asked[0], Pods: asked}, config.Trusted{})[0].Expr
		g.Expect(namespace).To(ContainSubstring("{namespace=" + strconv.Quote(asked[0]) + ",pod=~" + written + ","))
	}
}

func TestBatchesAreBounded(t *testing.T) {
	g := NewWithT(t)
	var stays []Stay
	var long []string
	for i, name := range names(250) {
		stays = append(stays, stay(name, at(0, 0)).holds(int64(i%2)))
		long = append(long, strings.Repeat("long.", 40)+name)
		stays = append(stays, Stay{Namespace: "brands", Pod: long[i], Begin: at(0, 0)})
	}
	stays = append(stays,
		stay("ctr-0000", at(-5, 0)), stay("yesterday", at(-5, 0)).until(at(-1, 0)), stay("no \xff label", at(0, 0)),
		Stay{Namespace: "zoo", Pod: strings.Repeat("z", 2*maxNames), Begin: at(0, 0)})
	batches := NewDay(day, stays, tomorrow).PendingBatches()
	asked := map[string][]string{}
	for _, b := range batches {
		g.Expect(len(b.Pods)).To(And(BeNumerically(">", 0), BeNumerically("<=", maxPods)))
		if b.Namespace != "zoo" {
			g.Expect(len(anyOf(b.Pods))).To(BeNumerically("<=", maxNames))
		}
		asked[b.Namespace] = append(asked[b.Namespace], b.Pods...)
		for _, pod := range b.Pods {
			index, _ := strconv.Atoi(strings.TrimPrefix(pod, "ctr-"))
			g.Expect(slices.Contains(b.Accelerated, pod)).To(Equal(b.Namespace == "ads" && index%2 == 1), pod)
		}
	}
	g.Expect(asked["ads"]).To(Equal(names(250)), "each once")
	g.Expect(asked["brands"]).To(Equal(long))
	g.Expect(asked["zoo"]).To(HaveLen(1), "one that is too long alone")
	g.Expect(len(batches)).To(BeNumerically(">", 3+1))
	g.Expect(batches[0].Pods).To(HaveLen(maxPods))
}
