package project

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
	_ "sigs.k8s.io/controller-runtime" // registers the metrics of its controllers, queues, webhooks and certificates
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var promQL = parser.NewParser(parser.Options{})

// A panel that does not load, or asks for what nobody counts, shows "No data", as one does that has nothing to show.
func TestDashboardLoads(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "config", "components", "monitoring", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID, Title    string
		SchemaVersion int
		Templating    struct{ List []struct{ Name, Type string } }
		Panels        []struct {
			ID         int
			Type       string
			Title      string
			GridPos    struct{ X, Y, W, H int }
			Datasource struct{ Type, UID string }
			Targets    []struct{ RefID, Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || dashboard.Title == "" || dashboard.SchemaVersion < 36 || len(dashboard.Panels) == 0 {
		t.Errorf("%q, uid %q, schema %d, has %d panels",
			dashboard.Title, dashboard.UID, dashboard.SchemaVersion, len(dashboard.Panels))
	}
	if list := dashboard.Templating.List; len(list) != 1 || list[0].Name != "datasource" || list[0].Type != "datasource" {
		t.Errorf("whoever looks at it cannot choose the Prometheus: %v", list)
	}
	ids, places := map[int]bool{}, map[[2]int]string{}
	for _, panel := range dashboard.Panels {
		if panel.ID == 0 || ids[panel.ID] || panel.Title == "" || (panel.Type != "stat" && panel.Type != "timeseries") {
			t.Errorf("panel %d %q is of type %q", panel.ID, panel.Title, panel.Type)
		}
		ids[panel.ID] = true
		if panel.Datasource.UID != "${datasource}" || panel.Datasource.Type != "prometheus" {
			t.Errorf("panel %q asks %v", panel.Title, panel.Datasource)
		}
		at := panel.GridPos
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other, taken := places[[2]int{x, y}]; taken || x >= 24 {
					t.Fatalf("panel %q lies on %q, or beyond the edge", panel.Title, other)
				}
				places[[2]int{x, y}] = panel.Title
			}
		}
		if len(panel.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			checkMetrics(t, "panel "+panel.Title, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
}

// What people ask of a cluster has its panel, which shows each figure once although a second operator stands by.
func TestDashboardAnswersQuestions(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "config", "components", "monitoring", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := map[string][]string{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries[panel.Title] = append(queries[panel.Title], target.Expr)
		}
	}
	series := []string{
		`tideline_profile_accelerators{profile="ads",tier="research",pod="a"} 5`,
		`tideline_profile_accelerators{profile="ads",tier="research",pod="b"} 5`,
		`tideline_profile_jobs{profile="ads",state="waiting",reason="Unschedulable"} 2`,
		`tideline_profile_jobs{profile="shop",state="waiting",reason="Unschedulable"} 3`,
		`tideline_profile_jobs{profile="shop",state="running",reason=""} 9`,
		`tideline_profile_resources{profile="ads",resource="nvidia.com/gpu",kind="used"} 8`,
		`tideline_profile_resources{profile="ads",resource="nvidia.com/gpu",kind="deserved"} 4`,
		`tideline_profile_resources{profile="ads",resource="nvidia.com/gpu",kind="borrowed"} 4`,
		`tideline_profile_resources{profile="shop",resource="nvidia.com/gpu",kind="lent"} 4`,
		`tideline_profile_resources{profile="shop",resource="nvidia.com/gpu",kind="borrowed"} 0`,
		`tideline_profile_resources{profile="shop",resource="cpu",kind="lent"} 99`,
		`tideline_sizing_slack{profile="ads",tier="a",resource="cpu",mode="Recommend"} 2`,
		`tideline_sizing_slack{profile="ads",tier="b",resource="cpu",mode="Recommend"} 1`,
		`tideline_sizing_slack{profile="ads",tier="b",resource="memory",mode="Enforce"} 7`,
		`tideline_merge_line_length{pool="merges"} 3`,
		`tideline_merge_head_wait_seconds{pool="merges"} 120`,
		`tideline_capacity_unusable_ratio{queue="ads",resource="nvidia.com/gpu",model="A100",repacked="false",pod="a"} 0.5`,
		`tideline_capacity_unusable_ratio{queue="ads",resource="nvidia.com/gpu",model="A100",repacked="true",pod="a"} 0.25`,
		`tideline_capacity_repack_moves 3`,
	}
	for title, want := range map[string][]string{
		"Accelerators held now, by team and tier": {`{profile="ads", tier="research"} 5`},
		"Who waits, by reason":                    {`{reason="Unschedulable"} 5`},
		"Share of each team": {
			`{profile="ads", resource="nvidia.com/gpu"} 8`, `{profile="ads", resource="nvidia.com/gpu"} 4`,
		},
		"Borrowed and lent": {
			`{profile="ads", resource="nvidia.com/gpu"} 4`, `{profile="shop", resource="nvidia.com/gpu"} 4`,
		},
		"Cores beyond need":  {`{mode="Recommend", profile="ads"} 3`},
		"Memory beyond need": {`{mode="Enforce", profile="ads"} 7`},
		"Line of merges":     {`{pool="merges"} 3`},
		"Head of the line":   {`{pool="merges"} 120`},
		"Free accelerators of no use to who waits": {
			`{model="A100", queue="ads", resource="nvidia.com/gpu"} 0.5`, `{model="A100", queue="ads", resource="nvidia.com/gpu"} 0.25`,
		},
		"Moves advised": {`{} 3`},
	} {
		var shown []string
		for _, query := range queries[title] {
			shown = append(shown, figures(t, query, series, 0))
		}
		if !slices.Equal(shown, want) {
			t.Errorf("panel %q shows %q, and not %q", title, shown, want)
		}
	}
}

// checkMetrics holds a query to what the operator counts and its page explains.
func checkMetrics(t *testing.T, where, query string) {
	t.Helper()
	expr, err := promQL.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	page := readPage(t, alertsPage)
	known := registered()
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		name := selector.Name
		if strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_seconds_count") {
			name = name[:strings.LastIndex(name, "_")]
		}
		// What is ours is compared with its page where it is counted.
		if name != "up" && !strings.HasPrefix(name, "tideline_") && !known[name] {
			t.Errorf("%s: nobody counts %s", where, name)
		}
		if !strings.Contains(page, "| `"+name+"` |") {
			t.Errorf("%s: %s does not list %s", where, alertsPage, name)
		}
		return nil
	})
}

var described = regexp.MustCompile(`fqName: "(\w+)"`)

// registered are the names of the metrics that the libraries of the operator register.
func registered() map[string]bool {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		metrics.Registry.(prometheus.Collector).Describe(descriptions)
	}()
	names := map[string]bool{}
	for d := range descriptions {
		names[described.FindStringSubmatch(d.String())[1]] = true
	}
	return names
}

// evaluate returns for what labels a query holds after some minutes, when series have a sample each minute.
func evaluate(t *testing.T, query string, descriptions []string, minutes int) string {
	t.Helper()
	var holds []string
	for _, sample := range ask(t, query, descriptions, minutes) {
		holds = append(holds, sample.Metric.String())
	}
	return strings.Join(holds, " ")
}

// figures are what evaluate returns, each with its value.
func figures(t *testing.T, query string, descriptions []string, minutes int) string {
	t.Helper()
	var said []string
	for _, sample := range ask(t, query, descriptions, minutes) {
		said = append(said, fmt.Sprintf("%s %g", sample.Metric, sample.F))
	}
	return strings.Join(said, " ")
}

// ask asks a query about series that have a sample each minute.
func ask(t *testing.T, query string, descriptions []string, minutes int) promql.Vector {
	t.Helper()
	var all []storage.Series
	for _, description := range descriptions {
		of, values, err := promQL.ParseSeriesDesc(description)
		if err != nil {
			t.Fatalf("%s: %v", description, err)
		}
		series := promql.Series{Metric: of}
		for minute, value := range values {
			if at := time.Duration(minute) * time.Minute; !value.Omitted {
				series.Floats = append(series.Floats, promql.FPoint{T: at.Milliseconds(), F: value.Value})
			}
		}
		all = append(all, promql.NewStorageSeries(series))
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: promQL})
	defer func() { _ = engine.Close() }()
	stored := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			set := &seriesSet{}
			for _, series := range all {
				if matches(series.Labels(), matchers) {
					set.left = append(set.left, series)
				}
			}
			return set
		},
	}}
	asked, err := engine.NewInstantQuery(t.Context(), stored, nil, query, time.UnixMilli(0).Add(time.Duration(minutes)*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	vector, err := asked.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return vector
}

func matches(of labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(of.Get(m.Name)) {
			return false
		}
	}
	return true
}

// seriesSet hands out series one by one.
type seriesSet struct {
	current storage.Series
	left    []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.current, s.left = s.left[0], s.left[1:]
	return true
}

func (s *seriesSet) At() storage.Series              { return s.current }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }
