package quickstart

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/cost"
	"github.com/tideline-io/tideline/internal/cost/mail"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// dryRun is how objects are given to the API server, which asks all webhooks and keeps nothing.
const dryRun = "kubectl apply --dry-run=server --validate=strict "

// isOthersJob is the head of a job that is converted.
var isOthersJob = regexp.MustCompile(`(?m)^kind: (PyTorchJob|MPIJob|TrainJob)$|^apiVersion: batch\.volcano\.sh/`)

// applyAll gives all YAML of samples, examples and pages to who reads it: objects to the API server, with webhooks and the kinds
// of others; kustomizations to kustomize and then to the API server; configurations to the operator's loader; jobs of others to
// `tideline convert` and then to the API server. A fragment is completed first by what its fence says it is a part of.
func applyAll(ctx context.Context, u *user) {
	GinkgoHelper()
	crds := monitoringKinds(ctx)
	u.do(ctx, "the kinds of prometheus-operator", "kubectl apply --server-side "+crds)
	defer u.do(ctx, "the kinds of prometheus-operator", "kubectl delete "+crds)

	for _, pattern := range []string{"config/samples/*.yaml", "docs/examples/*.yaml", "docs/examples/*/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(u.clone, pattern))
		Expect(err).NotTo(HaveOccurred(), "%s is a pattern", pattern)
		Expect(files).NotTo(BeEmpty(), "%s matches", pattern)
		for _, file := range files {
			if filepath.Base(file) != "kustomization.yaml" {
				applyText(ctx, u, file, string(content(file)))
			}
		}
	}
	pages, err := markdown.Pages(os.DirFS(u.clone))
	Expect(err).NotTo(HaveOccurred(), "the pages are listed")
	applied := 0
	for _, page := range pages {
		configuration, profile := "", ""
		for _, block := range markdown.In("yaml", markdown.Blocks(u.read(page))) {
			where := fmt.Sprintf("%s:%d", page, block.Line)
			applied++
			switch {
			case block.Note == "fragment of spec" && strings.Contains("\n"+block.Text, "\n  dataSets:\n"):
				applyInTeam(ctx, u, where, profile, completedSpec(u, block.Text))
			case block.Note != "":
				if block.Note == "fragment of profile" {
					profile = completedProfile(block.Text)
				}
				applyFragment(ctx, u, where, block)
			case strings.Contains(block.Text, "kind: "+config.Kind+"\n"):
				_, err := config.Load(where, []byte(block.Text))
				Expect(err).NotTo(HaveOccurred(), "%s: the operator reads it", where)
				configuration = block.Text
			case strings.Contains(block.Text, "kind: Kustomization\n"):
				applyKustomization(ctx, u, where, block.Text, configuration)
			case isOthersJob.MatchString(block.Text):
				converted, err := u.run(ctx, "bin/tideline convert -f - 2>/dev/null", block.Text)
				Expect(err).NotTo(HaveOccurred(), "%s: it is converted", where)
				applyText(ctx, u, where, converted)
			default:
				applyText(ctx, u, where, block.Text)
			}
		}
	}
	Expect(applied).To(BeNumerically(">=", 10), "pages have YAML")
}

func applyText(ctx context.Context, u *user, where, text string) {
	GinkgoHelper()
	out, err := u.run(ctx, dryRun+"-f -", text)
	Expect(err).NotTo(HaveOccurred(), "%s is applied: %s\n%s", where, out, text)
}

// applyKustomization builds a kustomization of a user's, with the clone for what it names of the repository, and next to it the
// configuration that its page shows.
func applyKustomization(ctx context.Context, u *user, where, text, configuration string) {
	GinkgoHelper()
	folder, err := os.MkdirTemp(u.clone, "shown-")
	Expect(err).NotTo(HaveOccurred(), "there is a folder")
	text = strings.NewReplacer("github.com/tideline-io/tideline/", "../", "?ref=main", "").Replace(text)
	for name, content := range map[string]string{"kustomization.yaml": text, "configuration.yaml": configuration} {
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed(), "%s is written", name)
	}
	built, err := u.run(ctx, "kubectl kustomize "+folder+" 2>/dev/null", "")
	Expect(err).NotTo(HaveOccurred(), "%s is built: %s\n%s", where, built, text)
	applyText(ctx, u, where, anyClaim.ReplaceAllString(built, "${1}shown"))
}

// anyClaim finds the names of claims. A page shows a claim of a first installation, which the one that is installed cannot
// become.
var anyClaim = regexp.MustCompile(`(?m)(^kind: PersistentVolumeClaim\nmetadata:\n(?:  .*\n)*?  name: ).*$`)

// fieldOfSpec begins a field of a spec, which ends where the next one begins.
var fieldOfSpec = regexp.MustCompile(`(?m)^  (\w+):`)

// completedSpec is the smallest sample with a fragment of its spec, in place of what the sample has of it.
func completedSpec(u *user, fragment string) string {
	GinkgoHelper()
	const spec = "\nspec:\n"
	head, fields, found := strings.Cut(u.read("config/samples/smallest.yaml"), spec)
	Expect(found).To(BeTrue(), "the sample has a spec")
	shown := map[string]bool{}
	for _, name := range fieldOfSpec.FindAllStringSubmatch(fragment, -1) {
		shown[name[1]] = true
	}
	whole := strings.Builder{}
	whole.WriteString(head + spec + fragment)
	begins := fieldOfSpec.FindAllStringSubmatchIndex(fields, -1)
	for i, at := range begins {
		end := len(fields)
		if i+1 < len(begins) {
			end = begins[i+1][0]
		}
		if !shown[fields[at[2]:at[3]]] {
			whole.WriteString(fields[at[0]:end])
		}
	}
	return whole.String()
}

// team is a profile, and the namespace that belongs to it.
const team = "shown"

// completedProfile is a profile with a fragment of its spec.
func completedProfile(fragment string) string {
	return "apiVersion: tideline.io/v1beta1\nkind: ResourceQuotaProfile\nmetadata: {name: " + team + "}\nspec:\n" +
		"  namespaceSelector: {matchLabels: {team: " + team + "}}\n" + fragment
}

// applyInTeam gives a job to the API server that names what the profile of its page has.
func applyInTeam(ctx context.Context, u *user, where, profile, job string) {
	GinkgoHelper()
	u.do(ctx, where, "kubectl create namespace "+team+" && kubectl label namespace "+team+" team="+team)
	defer u.do(ctx, where, "kubectl delete namespace/"+team+" resourcequotaprofile/"+team)
	out, err := u.run(ctx, "kubectl apply -f -", profile)
	Expect(err).NotTo(HaveOccurred(), "%s: its page has the profile: %s", where, out)
	Eventually(func() (string, error) { return u.run(ctx, dryRun+"--namespace="+team+" -f -", job) }).Should(
		ContainSubstring("(server dry run)"), "%s is applied, once the webhooks know the profile:\n%s", where, job)
}

// applyFragment completes a fragment: one of a job's spec by the smallest sample, without the sample's template where it has one,
// one of a merge's or a profile's by what it must have, one of the operator's configuration by its head, one of Volcano's by the
// shipped one. What stands in ConfigMaps for reports is read as the operator does.
func applyFragment(ctx context.Context, u *user, where string, block markdown.Block) {
	GinkgoHelper()
	switch block.Note {
	case "fragment of spec":
		applyText(ctx, u, where, completedSpec(u, block.Text))
	case "fragment of profile":
		applyText(ctx, u, where, completedProfile(block.Text))
	case "fragment of merge":
		text := "apiVersion: tideline.io/v1beta1\nkind: MergeJob\nmetadata: {name: shown}\nspec:\n" +
			"  template: {spec: {containers: [{name: merge, image: merge}]}}\n" + block.Text
		if !strings.Contains(block.Text, "  store:\n") {
			text += "  store: {type: S3, s3: {bucket: models, credentialsRef: {name: model-store}}}\n"
		}
		applyText(ctx, u, where, text)
	case "fragment of configuration":
		_, err := config.Load(where, []byte("apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\n"+block.Text))
		Expect(err).NotTo(HaveOccurred(), "%s: the operator reads it", where)
	case "fragment of volcano-scheduler.conf":
		key, _, _ := strings.Cut(block.Text, ":")
		line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(key) + `:.*\n`)
		before := string(content(shipped))
		Expect(line.FindAllString(before, -1)).To(HaveLen(1), "%s: the shipped configuration has one line %s", where, key)
		checkSchedulerConf(ctx, u, where, line.ReplaceAllLiteralString(before, block.Text))
	case "prices.yaml":
		_, err := cost.ParsePrices([]byte(block.Text))
		Expect(err).NotTo(HaveOccurred(), "%s: the operator reads it", where)
	case "people.yaml":
		_, _, err := mail.ParseDirectory([]byte(block.Text))
		Expect(err).NotTo(HaveOccurred(), "%s: the operator reads it", where)
	default:
		Fail(fmt.Sprintf("%s: `%s` says nothing of what it is: a fragment of spec, merge, profile, configuration or "+
			"volcano-scheduler.conf, prices.yaml, or people.yaml", where, block.Note))
	}
}

// checkSchedulerConf has Volcano run with a configuration that a page tells to make, and the doctor find no action missing in it.
func checkSchedulerConf(ctx context.Context, u *user, where, conf string) {
	GinkgoHelper()
	before := u.node.conf
	Expect(u.node.cluster.SetSchedulerConf(ctx, conf)).To(Succeed(), "%s: Volcano gets it", where)
	defer func() {
		Expect(u.node.cluster.SetSchedulerConf(ctx, before)).To(Succeed(), "Volcano gets its configuration back")
		u.node.conf = before // at once: the next fragment is checked before the node looks again
	}()
	out, _ := u.run(ctx, "bin/tideline doctor", "") // which finds that plugins are not as they should be
	Expect(out).To(And(ContainSubstring("plugin overcommit"), Not(MatchRegexp(`actions? \w+ is missing`))), "%s:\n%s", where, conf)
	u.do(ctx, where, "kubectl apply -f config/samples/smallest.yaml && "+
		"kubectl wait etj/resnet --for=condition=Ready --timeout=1m && kubectl delete etj/resnet")
}

// monitoringKinds are kubectl's arguments for the CustomResourceDefinitions of what component monitoring has.
func monitoringKinds(ctx context.Context) string {
	GinkgoHelper()
	const module = "github.com/prometheus-operator/prometheus-operator"
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = filepath.Join(repository, "test", "project", "schemas")
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "the module with the kinds of prometheus-operator is there")
	var downloaded struct{ Dir string }
	Expect(json.Unmarshal(out, &downloaded)).To(Succeed(), "its folder is known")
	folder := filepath.Join(downloaded.Dir, "example", "prometheus-operator-crd")
	return "-f " + filepath.Join(folder, "monitoring.coreos.com_prometheusrules.yaml") +
		" -f " + filepath.Join(folder, "monitoring.coreos.com_servicemonitors.yaml")
}
