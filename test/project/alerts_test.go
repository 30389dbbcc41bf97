package project

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"sigs.k8s.io/yaml"
)

const alertsPage = "docs/metrics.md"

// alerts are the rules of component monitoring, as Prometheus reads them.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, "config", "components", "monitoring", "prometheusrule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Spec map[string]any }
	if err := yaml.Unmarshal(content, &object); err != nil {
		t.Fatal(err)
	}
	// prometheus-operator hands the spec on to Prometheus as its file of rules.
	file, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, problems := rulefmt.Parse(file, false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
	for _, problem := range problems {
		t.Error(problem)
	}
	if groups == nil {
		t.Fatal("there are no rules")
	}
	var rules []rulefmt.Rule
	for _, group := range groups.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

// Whoever is woken by an alert reads what it means, and finds what to do.
func TestAlertsAreExplained(t *testing.T) {
	explained := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^### (Tideline\w+)$`).FindAllStringSubmatch(readPage(t, alertsPage), -1) {
		explained[heading[1]] = true
	}
	for _, rule := range alerts(t) {
		if !explained[rule.Alert] {
			t.Errorf("%s has no paragraph on %s", alertsPage, rule.Alert)
		}
		delete(explained, rule.Alert)
		link := "https://github.com/tideline-io/tideline/blob/main/" + alertsPage + "#" + strings.ToLower(rule.Alert)
		if rule.Annotations["runbook_url"] != link {
			t.Errorf("%s leads to %q, its paragraph is %s", rule.Alert, rule.Annotations["runbook_url"], link)
		}
		if rule.Annotations["summary"] == "" || len(rule.Annotations["description"]) < 40 {
			t.Errorf("%s does not say what happened: %v", rule.Alert, rule.Annotations)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
			t.Errorf("%s has severity %q", rule.Alert, rule.Labels["severity"])
		}
		checkMetrics(t, rule.Alert, rule.Expr)
	}
	for _, alert := range slices.Sorted(maps.Keys(explained)) {
		t.Errorf("%s explains %s, which is no alert", alertsPage, alert)
	}
}

// What each alert sees: series by the notation of promtool, a sample a minute, and whether it is there at a minute.
func TestAlertsSeeWhatTheyAreFor(t *testing.T) {
	const (
		job      = `job="tideline-metrics"`
		leads    = "leader_election_master_status{" + job
		failures = "controller_runtime_reconcile_errors_total{" + job

		ready      = `tideline_cost_report_ready{report="weekly"}`
		nextReport = `tideline_cost_report_next_timestamp_seconds{report="weekly"}`
		recipients = `tideline_cost_report_recipients{report="weekly"`
	)
	cases := map[string][]struct {
		name   string
		series []string
		at     int // minutes
		want   string
	}{
		"TidelineDown": {
			{"nobody is asked", nil, 10, "{}"},
			{"one of two answers", []string{"up{" + job + `,pod="a"} 0x10`, "up{" + job + `,pod="b"} 1x10`}, 10, ""},
			{"none answers", []string{"up{" + job + "} 1x5 0x5"}, 10, "{}"},
		},
		"TidelineNotLeading": {
			{"one leads", []string{leads + `,pod="a"} 0x9`, leads + "} 1x9"}, 9, ""},
			{"none leads", []string{leads + "} 0x9"}, 9, "{}"},
		},
		"TidelineReconcileErrors": {
			{"one in a hundred", reconciles(100, 1), 30, ""},
			{"one in four", reconciles(100, 25), 30, `{controller="elastictrainingjob"}`},
		},
		"TidelineReconcilePanics": {
			{"none", []string{"controller_runtime_reconcile_panics_total{" + job + `,controller="a"} 1x60`}, 60, ""},
			{"one", []string{"controller_runtime_reconcile_panics_total{" + job + `,controller="a"} 0x30 1x30`}, 60, `{controller="a"}`},
		},
		"TidelineQueueSlow": {
			{"milliseconds", buckets("workqueue_queue_duration_seconds", job+`,controller="a"`, "0.1", "100"), 10, ""},
			{"a minute", buckets("workqueue_queue_duration_seconds", job+`,controller="a"`, "100", "1000"), 10, `{controller="a"}`},
		},
		"TidelineReconcileStuck": {
			{"seconds", []string{"workqueue_longest_running_processor_seconds{" + job + `,controller="a"} 3x9`}, 9, ""},
			{"minutes", []string{"workqueue_longest_running_processor_seconds{" + job + `,controller="a"} 0+60x9`}, 9, `{controller="a"}`},
		},
		"TidelineWebhookSlow": {
			{"milliseconds", buckets("controller_runtime_webhook_latency_seconds", job+`,webhook="/a"`, "0.1", "10"), 10, ""},
			{"seconds", buckets("controller_runtime_webhook_latency_seconds", job+`,webhook="/a"`, "10", "30"), 10, `{webhook="/a"}`},
		},
		"TidelineWebhookCertificate": {
			{"jobs fail", []string{failures + `,controller="elastictrainingjob"} 0+1x60`}, 60, ""},
			{"made by the operator", []string{failures + `,controller="webhook-certificates"} 0+1x60`}, 60, "{}"},
			{"made by others", []string{"certwatcher_read_certificate_errors_total{" + job + "} 0+1x60"}, 60, "{}"},
		},
		"TidelineNothingStarts": {
			{"nobody waits", []string{`tideline_jobs{phase="Pending"} 3x60 0x60`, "tideline_job_placement_seconds_count 5x120"}, 120, ""},
			{"all await approval", []string{
				`tideline_jobs{phase="Pending"} 3x120`, "tideline_jobs_awaiting_approval 3x120", "tideline_job_placement_seconds_count 5x120",
			}, 120, ""},
			{"others await approval", []string{
				`tideline_jobs{phase="Pending"} 3x120`, "tideline_jobs_awaiting_approval 2x120", "tideline_job_placement_seconds_count 5x120",
			}, 120, "{}"},
			{"others start", []string{`tideline_jobs{phase="Pending"} 3x120`, "tideline_job_placement_seconds_count 0+1x120"}, 120, ""},
			{"none starts", []string{`tideline_jobs{phase="Pending"} 3x120`, "tideline_job_placement_seconds_count 5x120"}, 120, "{}"},
			{"a new leader", []string{`tideline_jobs{phase="Pending",pod="b"} 3x120`}, 120, "{}"},
		},
		"TidelineLedgerFails": {
			{"a restart of the database", []string{"tideline_ledger_failures_total{" + job + "} 0x10 3+3x1 6x20"}, 15, ""},
			{"it is down", []string{"tideline_ledger_failures_total{" + job + "} 0+1x30"}, 30, "{}"},
		},
		"TidelinePrometheusFails": {
			{"nobody asks", []string{"up{" + job + "} 1x180"}, 180, ""},
			{"it tells all", []string{`tideline_prometheus_up{pod="a"} 0x90 1x90`}, 180, ""},
			{"it does not", []string{`tideline_prometheus_up{pod="a"} 1x90 0x90`}, 180, "{}"},
		},
		"TidelineJobsWaitLong": {
			{"minutes", buckets("tideline_job_wait_seconds", `tier="exploratory"`, "600", "14400"), 360, ""},
			{"a day", buckets("tideline_job_wait_seconds", `tier="exploratory"`, "86400", "259200"), 360, `{tier="exploratory"}`},
		},
		"TidelineTeamAtCap": {
			{"nobody waits", atCap(8, 0, "QuotaExceeded"), 60, ""},
			{"those that wait await approval", atCap(8, 3, "AwaitingApproval"), 60, ""},
			{"room is left", atCap(7, 3, "QuotaExceeded"), 60, ""},
			{"it is full, and jobs wait", atCap(8, 3, "QuotaExceeded"), 60, `{profile="ads", resource="nvidia.com/gpu"}`},
		},
		"TidelineRestartsSurge": {
			{"few", []string{`tideline_restarts_total{cause="oom"} 0x1380 1+1x9 10x50`}, 1440, ""},
			{"as always", []string{`tideline_restarts_total{cause="oom"} 0+1x1440`}, 1440, ""},
			{"many at once", []string{`tideline_restarts_total{cause="oom"} 0x1400 0+2x40`}, 1440, `{cause="oom"}`},
		},
		"TidelineEvictionStorm": {
			{"as always", []string{`tideline_evictions_total{reason="scheduler"} 0+10x1440`}, 1440, ""},
			{"a rack is lost", []string{`tideline_evictions_total{reason="node_lost"} 0x1435 64x5`}, 1440, `{reason="node_lost"}`},
		},
		"TidelineTrainingStalled": {
			{"it trains", []string{stalledOf + " 0x60"}, 60, ""},
			{"it goes on after a while", []string{stalledOf + " 1x10 0x50"}, 60, ""},
			{"it hangs", []string{stalledOf + " 0x10 1x50"}, 60, `{name="ctr", namespace="ads", queue="ads"}`},
		},
		"TidelineGoodputLow": {
			{"most is kept", goodput("0+600x1600", "0+400x1600", "0x1600"), 1600, ""},
			{"none says that it saves", goodput("0+600x1600", "0x1600", "0x1600"), 1600, ""},
			{"little was held", goodput("0+6x1600", "0+1x1600", "0+4x1600"), 1600, ""},
			{"most is lost", goodput("0+600x1600", "0+200x1600", "0+300x1600"), 1600, `{queue="ads"}`},
			{"all is lost", goodput("0+600x1600", "0x1600", "0+500x1600"), 1600, `{queue="ads"}`},
			{"much time goes by without steps", goodput("0+600x1600", "0+200x1600", "0x1600"), 1600, `{queue="ads"}`},
		},
		"TidelineNodeSuspected": {
			{"it is only shunned", []string{
				`tideline_suspect_nodes{level="shunned"} 3x60`, `tideline_suspect_nodes{level="accused"} 0x60`,
			}, 60, ""},
			{"one is accused", []string{`tideline_suspect_nodes{level="accused"} 0x30 1x30`}, 60, "{}"},
		},
		"TidelineFullModelOld": {
			{"an interval and a bit", ageOf("36000", "50000"), 1, ""},
			{"two intervals", ageOf("36000", "72000"), 1, `{name="ctr", namespace="ads"}`},
			{"no schedule", ageOf("36000", "72000")[1:], 1, ""},
		},
		"TidelineMergeHeadWaiting": {
			{"nobody asks", []string{`tideline_merge_line_length{pool="a"} 7x60`}, 60, ""},
			{"minutes", []string{`tideline_merge_head_wait_seconds{pool="a"} 0+60x59`}, 59, ""},
			{"more than an hour", []string{`tideline_merge_head_wait_seconds{pool="a",pod="b"} 0+60x61`}, 61, `{pool="a"}`},
		},
		"TidelineMergesFail": {
			{"they merge", []string{`tideline_merge_runs_total{pool="a",outcome="Merged"} 0+1x60`}, 60, ""},
			{"one fails", []string{`tideline_merge_runs_total{pool="a",outcome="Failed"} 0x30 1x30`}, 60, ""},
			{"some fail, some take too long", []string{
				`tideline_merge_runs_total{pool="a",outcome="Failed"} 0x30 2x30`,
				`tideline_merge_runs_total{pool="a",outcome="TimedOut"} 1x20 3x40`,
			}, 60, `{pool="a"}`},
		},
		"TidelineReportOverdue": {
			{"it is due tomorrow", []string{nextReport + " 90000x180"}, 180, ""},
			{"suspended", []string{"tideline_cost_report_last_timestamp_seconds{report=\"weekly\"} 0x180"}, 180, ""},
			{"made late", []string{nextReport + " 600x180 90000x10"}, 185, ""},
			{"not made", []string{nextReport + " 600x180"}, 180, `{report="weekly"}`},
		},
		"TidelineReportNotReady": {
			{"all is well", []string{ready + " 1x60", nextReport + " 90000x60"}, 60, ""},
			{"it cannot be made tomorrow", []string{ready + " 0x60", nextReport + " 90000x60"}, 60, `{report="weekly"}`},
			{"its schedule is none", []string{ready + " 0x60"}, 60, `{report="weekly"}`},
			{"it is late already", []string{ready + " 0x60", nextReport + " 600x60"}, 60, ""},
		},
		"TidelineReportMails": {
			{"nobody gets it", []string{ready + " 1x60"}, 60, ""},
			{"all were accepted", []string{recipients + `,state="sent"} 3x60`, recipients + `,state="refused"} 0x60`}, 60, ""},
			{"one was refused, of one nobody knows", []string{
				recipients + `,state="sent"} 3x60`, recipients + `,state="refused"} 1x60`, recipients + `,state="unconfirmed"} 1x60`,
			}, 60, `{report="weekly", state="refused"} {report="weekly", state="unconfirmed"}`},
		},
	}
	for _, rule := range alerts(t) {
		if len(cases[rule.Alert]) < 2 {
			t.Errorf("%s: nothing shows when it is there, or when it is not", rule.Alert)
		}
		for _, c := range cases[rule.Alert] {
			if got := evaluate(t, rule.Expr, c.series, c.at); got != c.want {
				t.Errorf("%s, %s: it is there for %q, want %q", rule.Alert, c.name, got, c.want)
			}
		}
	}
}

// reconciles are the counters of a controller, with so many reconciles and errors a minute.
func reconciles(all, failed int) []string {
	const of = `{job="tideline-metrics",controller="elastictrainingjob"`
	return []string{
		"controller_runtime_reconcile_total" + of + `,result="success"} 0+` + strconv.Itoa(all-failed) + "x30",
		"controller_runtime_reconcile_total" + of + `,result="error"} 0+` + strconv.Itoa(failed) + "x30",
		"controller_runtime_reconcile_errors_total" + of + "} 0+" + strconv.Itoa(failed) + "x30",
	}
}

// ageOf are the interval of a merge and the age of its full model, in seconds.
func ageOf(interval, age string) []string {
	const of = `{namespace="ads",name="ctr",pool="a",pod="b"} `
	return []string{
		"tideline_merge_interval_seconds" + of + interval + "x1", "tideline_merge_full_model_age_seconds" + of + age + "x1",
	}
}

// buckets are a histogram to which each minute adds ten values, all of them up to a bound; above is the next.
func buckets(name, of, bound, above string) []string {
	var series []string
	for _, le := range []string{bound, above, "+Inf"} {
		series = append(series, name+"_bucket{"+of+`,le="`+le+`"} 0+10x360`)
	}
	return append(series, name+"_bucket{"+of+`,le="0.001"} 0x360`)
}

// atCap is a team that uses so much of its capability of 8, while jobs wait for a reason.
func atCap(used, waiting int, reason string) []string {
	of := func(kind string, n int) string {
		return fmt.Sprintf(`tideline_profile_resources{profile="ads",resource="nvidia.com/gpu",kind=%q} %dx60`, kind, n)
	}
	return []string{
		of("used", used), of("capability", 8),
		fmt.Sprintf(`tideline_profile_jobs{profile="ads",state="waiting",reason=%q} %dx60`, reason, waiting),
	}
}

// stalledOf is whether a training takes no steps.
const stalledOf = `tideline_training_stalled{namespace="ads",name="ctr",queue="ads"}`

// goodput are the GPU-seconds of a queue: held, kept and lost.
func goodput(held, kept, lost string) []string {
	return []string{
		`tideline_training_gpu_seconds_total{queue="ads"} ` + held,
		`tideline_training_kept_gpu_seconds_total{queue="ads"} ` + kept,
		`tideline_training_lost_gpu_seconds_total{queue="ads"} ` + lost,
	}
}
