// Package doctor tells whether a cluster is set up for Tideline: one screen, and what to do about each finding.
package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tideline-io/tideline/internal/platform/priorityclass"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

var (
	// oldestVolcano is the oldest Volcano whose behaviour Tideline rests on.
	oldestVolcano = version.MustParseSemantic("v1.14.0")
	// gangVolcano is the oldest Volcano with actions gangpreempt and gangreclaim.
	gangVolcano = version.MustParseSemantic("v1.15.0")
)

// What mends Volcano, by Helm and by kubectl.
const (
	upgradeVolcano = "helm upgrade --repo https://volcano-sh.github.io/helm-charts --install --create-namespace " +
		"--namespace volcano-system volcano volcano" //nolint:dupword // the release and the chart
	restartVolcano = "kubectl rollout restart --namespace volcano-system deployment/volcano-scheduler deployment/volcano-controllers"
)

// Facts are what was found in the cluster.
type Facts struct {
	// Server is the version of the API server.
	Server string
	// MissingKinds are kinds that the API server does not serve, ours and Volcano's.
	MissingKinds []string
	// VolcanoImage is the image of Volcano's scheduler; empty when it runs as no Deployment.
	VolcanoImage string
	// SchedulerObstacles are what in the configuration of Volcano's scheduler keeps surplus from giving way.
	SchedulerObstacles []gang.Obstacle
	// EvictsForGangs holds where that configuration has actions that came with Volcano 1.15.
	EvictsForGangs bool
	// HyperNodes is how many there are, and PlacesByTopology holds where that configuration has Volcano place gangs by them.
	HyperNodes       int
	PlacesByTopology bool
	// Queues are the states of the Queues by name.
	Queues map[string]string
	// Classes are the PriorityClasses by name.
	Classes map[string]priorityclass.Class
	// VolcanoWebhooks is how many webhooks of Volcano judge PodGroups.
	VolcanoWebhooks int
	// MissingWebhooks are our webhook configurations that are not installed.
	MissingWebhooks []string
	// UntrustedWebhooks are those without a CA, so that every job is refused.
	UntrustedWebhooks []string
	// OthersCertificate holds where somebody else than the operator keeps the certificate of our webhooks: cert-manager, or OLM,
	// which names the configurations itself.
	OthersCertificate bool
	// Namespace is the operator's: that of the Service which our webhooks name, or tideline-system where there are none.
	Namespace string
	// Operator are the replicas of the operator's Deployment; nil where there is none.
	Operator *Replicas
	// LeaseSilence is how long ago an operator last renewed the Lease by which it leads; nil where there is no Lease.
	LeaseSilence *time.Duration
	// LeaseNamespace has that Lease, and Leader is who holds it.
	LeaseNamespace, Leader string
	// OtherLeader holds another Lease at the same time, in [kube.OutsideNamespace]; empty where there is none.
	OtherLeader string
	// Local holds for a cluster where Tideline is not installed, but for its kinds: the operator runs outside, as by make run, with
	// the rights of a kubeconfig.
	Local bool
	// Denied are requests that the operator's ServiceAccount may not make; of a local setup, those that who asks may not make.
	Denied []string
	// MissingGuards are the policies of config/guard that are not in force.
	MissingGuards []string
	// RefusingOthers are the profiles that refuse other workloads, and OthersGap is why the API server does not, and what to do;
	// empty where it does.
	RefusingOthers []string
	OthersGap      string
	// ClaimUnbound holds where the ledger's claim has no volume.
	ClaimUnbound bool
	// Scheduler are the replicas of Volcano's scheduler; nil where it runs as no Deployment.
	Scheduler *Replicas
	// Waiting are the pods that wait for it.
	Waiting Waiting
	// Installed is how the operator was installed; nil where it has no Deployment.
	Installed *Installation
	// OtherDefinitions are our CustomResourceDefinitions whose fields or rules are not those of this program.
	OtherDefinitions []string
	// StoredBefore names our CustomResourceDefinitions that may still have objects stored in an earlier version of the API.
	StoredBefore []string
	// Certificate is why the API server does not trust our webhooks; empty where it does.
	Certificate string
	// Services are the ports of all Services, and Prometheuses those that look like Prometheus.
	Services     map[client.ObjectKey][]int32
	Prometheuses []client.ObjectKey
	// authorities are the CAs of our webhooks by what has them.
	authorities map[string][]byte
}

// Level is how a finding is meant.
type Level int

const (
	// Wrong is to be mended.
	Wrong Level = iota
	// Warn may be meant, and costs something.
	Warn
	// Unknown could not be found out.
	Unknown
	// OK is as it should be.
	OK
)

// String is the first word of a finding's line.
func (l Level) String() string { return [...]string{"WRONG", "WARN", "?", "OK"}[l] }

// MarshalText writes a level for programs.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Finding is one line of the screen.
type Finding struct {
	Level Level `json:"level"`
	// What was found, with the figures.
	What string `json:"what"`
	// Do says how to mend it; empty when OK.
	Do string `json:"do,omitempty"`
	// Run is a command that mends it, or that lists what is to be known for that; capital words in it are to be replaced. Empty
	// where Do or Manifest has it.
	Run string `json:"run,omitempty"`
	// Manifest is the YAML that Do speaks of; empty for most findings.
	Manifest string `json:"manifest,omitempty"`
}

// judgeClasses judges the PriorityClasses of all tiers and of reservations: one finding for each that is to be mended, or one for
// all.
func judgeClasses(have map[string]priorityclass.Class, tiers config.Tiers) []Finding {
	var findings []Finding
	for _, p := range priorityclass.FindProblems(have, tiers) {
		findings = append(findings, Finding{What: p.What, Do: p.Do, Manifest: p.Manifest})
	}
	if len(findings) > 0 {
		return findings
	}
	return []Finding{{Level: OK, What: fmt.Sprintf("The PriorityClasses of all tiers and of reservations are there (%d).",
		len(tiers.PriorityClasses()))}}
}

// ExamineFacts judges the facts, in the order in which a person would mend them.
func ExamineFacts(f Facts, cfg *config.Configuration) []Finding {
	findings := []Finding{{Level: OK, What: "The API server answers: version " + f.Server + "."}}
	findings = append(findings, kinds(f))
	findings = append(findings, versions(f)...)
	findings = append(findings, volcanoVersion(f), schedulerLives(f), scheduler(f))
	findings = append(findings, topology(f)...)
	findings = append(findings, webhooks(f), ownWebhooks(f))
	findings = append(findings, certificates(f)...)
	findings = append(findings, queues(f))
	findings = append(findings, pools(f.Queues, cfg.Merges.Pools)...)
	findings = append(findings, judgeClasses(f.Classes, cfg.Tiers)...)
	findings = append(findings, permissions(f), guarded(f))
	findings = append(findings, others(f)...)
	findings = append(findings, claims(f)...)
	findings = append(findings, installation(f, cfg)...)
	findings = append(findings, prometheus(f, cfg)...)
	return append(findings, operator(f))
}

func kinds(f Facts) Finding {
	if len(f.MissingKinds) == 0 {
		return Finding{Level: OK, What: "The kinds of Tideline and of Volcano are served."}
	}
	return Finding{
		What: "The API server does not serve: " + strings.Join(f.MissingKinds, ", ") + ".",
		Do:   "Install Volcano for kinds of scheduling.volcano.sh, and apply config/crd for those of tideline.io:",
		Run:  f.Installed.helm("", "kubectl apply --server-side -k config/crd"),
	}
}

func volcanoVersion(f Facts) Finding {
	if f.VolcanoImage == "" {
		return Finding{Level: Unknown, What: fmt.Sprintf("The version of Volcano's scheduler: there is no Deployment %s.",
			schedulerDeployment)}
	}
	tag := f.VolcanoImage[strings.LastIndex(f.VolcanoImage, ":")+1:]
	v, err := version.ParseSemantic(tag)
	switch {
	case err != nil:
		return Finding{Level: Unknown, What: fmt.Sprintf("The version of Volcano's scheduler: its image %s names none.",
			f.VolcanoImage)}
	case v.LessThan(oldestVolcano):
		return Finding{
			What: fmt.Sprintf("Volcano's scheduler is %s, older than v%s.", f.VolcanoImage, oldestVolcano),
			Do:   fmt.Sprintf("Upgrade Volcano to v%s or later:", oldestVolcano),
			Run:  upgradeVolcano,
		}
	case f.EvictsForGangs && v.LessThan(gangVolcano):
		return Finding{
			What: fmt.Sprintf("Volcano's scheduler is %s, and gangpreempt and gangreclaim come with v%s: it refuses the configuration "+
				"and goes on with the one before, or does not start.", f.VolcanoImage, gangVolcano),
			Do: fmt.Sprintf("Upgrade Volcano to v%s or later, or have preempt, reclaim instead of gangpreempt, gangreclaim in "+
				"ConfigMap %s.", gangVolcano, gang.SchedulerConfigMap),
			Run: upgradeVolcano,
		}
	}
	return Finding{Level: OK, What: "Volcano's scheduler is " + f.VolcanoImage + "."}
}

func scheduler(f Facts) Finding {
	if len(f.SchedulerObstacles) == 0 {
		return Finding{Level: OK, What: "Volcano's configuration lets surplus give way to waiting gangs."}
	}
	var found, remedies []string
	for _, o := range f.SchedulerObstacles {
		found = append(found, o.What)
		if o.Do != "" && !slices.Contains(remedies, o.Do) {
			remedies = append(remedies, o.Do)
		}
	}
	do := "Apply config/volcano, or change ConfigMap " + gang.SchedulerConfigMap.String()
	if len(remedies) > 0 {
		do += ": " + strings.Join(remedies, "; ")
	}
	return Finding{
		What: "Volcano's configuration does not let surplus give way as it should: " + strings.Join(found, "; ") + ".",
		Do:   do + ". Until then surplus leaves on the operator's word, when a gang has starved.",
		Run:  "kubectl apply -k config/volcano",
	}
}

func webhooks(f Facts) Finding {
	if f.VolcanoWebhooks > 0 {
		return Finding{Level: OK, What: fmt.Sprintf("Volcano's webhooks judge PodGroups (%d).", f.VolcanoWebhooks)}
	}
	return Finding{
		What: "No webhook of Volcano judges PodGroups, so that gangs can be submitted to queues that are closed.",
		Do:   "Install Volcano's webhook-manager (volcano-admission):",
		Run:  upgradeVolcano,
	}
}

// ownWebhooks finds nothing wrong with a cluster without webhooks, which may be meant, and says what that means.
func ownWebhooks(f Facts) Finding {
	switch {
	case len(f.UntrustedWebhooks) > 0:
		return Finding{
			What: "No job can be created, because these webhook configurations have no CA: " +
				strings.Join(f.UntrustedWebhooks, ", ") + ".",
			Do: "See why the operator is not ready. With --webhook-certs=files, what makes the certificates must write the CA. With " +
				"--webhooks=false, delete the configurations.",
			Run: fmt.Sprintf("kubectl logs --namespace %s deployment/%s", f.Namespace, f.deployment().Name),
		}
	case len(f.MissingWebhooks) > 0:
		return Finding{
			Level: Warn,
			What: "Jobs get no owner, their owners and ServiceAccounts are not checked, and users who may write a profile may change " +
				"all of it: these webhooks are not installed: " + strings.Join(f.MissingWebhooks, ", ") + ".",
			Do:  "For a cluster that people share, install the operator with its webhooks:",
			Run: f.Installed.helm("", "kubectl apply -k config/default"),
		}
	}
	return Finding{Level: OK, What: "Tideline's webhooks set the owners of jobs, and check owners, ServiceAccounts and shares."}
}

func queues(f Facts) Finding {
	var shut []string
	for name, state := range f.Queues {
		if state != gang.QueueOpen {
			shut = append(shut, fmt.Sprintf("%s (%s)", name, orUnknown(state)))
		}
	}
	slices.Sort(shut)
	switch {
	case len(f.Queues) == 0:
		return Finding{
			What: "There is no Volcano Queue.", Do: "Start Volcano's scheduler and controllers: they register Queue default.",
			Run: restartVolcano,
		}
	case len(shut) > 0:
		return Finding{
			What: fmt.Sprintf("%d of %d Queues are not open: %s.", len(shut), len(f.Queues), strings.Join(shut, ", ")),
			Do: "Open them (vcctl queue operate --action open --name NAME), or start Volcano's controllers, without which no Queue has " +
				"a state:",
			Run: restartVolcano,
		}
	}
	return Finding{Level: OK, What: fmt.Sprintf("All Queues are open (%d).", len(f.Queues))}
}

// pools judges whether merges have their Queues: one finding for each that is missing, or one for all. One that is not open is
// found among all Queues.
func pools(have map[string]string, names []string) []Finding {
	if len(have) == 0 {
		return nil // which is a finding already
	}
	var findings []Finding
	for _, name := range names {
		if _, found := have[name]; !found && name == config.DefaultPool {
			findings = append(findings, Finding{Level: OK, What: fmt.Sprintf(
				"There is no Queue %s yet, the pool of merges: the operator creates it with the first MergeJob.", name)})
		} else if !found {
			findings = append(findings, Finding{
				What:     fmt.Sprintf("There is no Queue %s, a pool of merges as configured (merges.pools).", name),
				Do:       "Apply what follows (kubectl apply -f FILE), or take it out of merges.pools:",
				Manifest: gang.PoolManifest(name),
			})
		}
	}
	if len(findings) > 0 {
		return findings
	}
	return []Finding{{Level: OK, What: fmt.Sprintf("The pools of merges have their Queues (%d).", len(names))}}
}

func orUnknown(state string) string {
	if state == "" {
		return "state unknown"
	}
	return state
}

func permissions(f Facts) Finding {
	who := "The operator's ServiceAccount in namespace " + f.Namespace
	do := "Apply config/rbac, or run the operator under an account that has this role."
	run := f.Installed.helm("", "kubectl apply -k config/rbac")
	if f.Local {
		who, do = "You, as whom make run would run the operator", "Use a kubeconfig with the rights of a cluster's admin:"
		run = "kubectl config get-contexts"
	}
	switch {
	case len(f.Denied) > 0:
		return Finding{What: who + ", may not: " + strings.Join(f.Denied, ", ") + ".", Do: do, Run: run}
	case f.Local:
		return Finding{Level: OK, What: "You have every right that the operator needs when make run starts it as you."}
	}
	return Finding{Level: OK, What: "The operator's ServiceAccount has every right of its role."}
}
