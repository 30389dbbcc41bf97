package cluster

import (
	"fmt"
	"strings"
)

// A Part is one module under modules/: the programs built of it and the files
// copied out of it into the cache.
type Part struct {
	name     string // folder under modules/, before the version if there are several
	module   string // module whose version names the folder in the cache
	variable string // environment variable that chooses one of several versions
	only     string // the version, where several have folders and this part is of one
	amends   string // module to which versions with a folder amend add the files in it
	programs []program
	files    []string // slash-separated paths inside the module
	ldflags  func(version string) string
	tags     string // build tags, separated by commas
}

// A program is one main package of a part.
type program struct {
	name  string // file name in the cache
	pkg   string
	takes string // duration of the first build on two cores
}

// TrainingOperatorManifests are what training-operator's kustomizations put
// together, but for what runs it in a cluster.
var TrainingOperatorManifests = []string{
	"manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
	"manifests/base/crds/kubeflow.org_tfjobs.yaml",
	"manifests/base/rbac/role.yaml",
	"manifests/base/rbac/cluster-role-binding.yaml",
	"manifests/base/webhook/manifests.yaml",
}

// NotebookControllerManifests are the kind and the role of Kubeflow's
// notebook-controller.
var NotebookControllerManifests = []string{
	"config/crd/bases/kubeflow.org_notebooks.yaml",
	"config/rbac/role.yaml",
}

// OLMDefinitions are the kinds of objects that OLM's own installation creates.
var OLMDefinitions = []string{
	"deploy/chart/crds/0000_50_olm_00-catalogsources.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-clusterserviceversions.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-installplans.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-olmconfigs.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-operatorconditions.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-operatorgroups.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-operators.crd.yaml",
	"deploy/chart/crds/0000_50_olm_00-subscriptions.crd.yaml",
}

// volcanoManifest is what Volcano's own installation applies.
const volcanoManifest = "installer/volcano-development.yaml"

var (
	etcdPart = Part{
		name:     "etcd",
		module:   "go.etcd.io/etcd/server/v3",
		programs: []program{{"etcd", "go.etcd.io/etcd/server/v3", "1 min"}},
	}
	kubernetesPart = Part{
		name:     "kubernetes",
		module:   "k8s.io/kubernetes",
		variable: KubernetesVariable,
		programs: []program{
			{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "3 min"},
			{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "1 min"},
		},
		ldflags: kubernetesVersionFlags,
	}
	// kubectlPart shares kubernetesPart's folder; it is built only where no
	// kubectl is on PATH.
	kubectlPart = Part{
		name:     kubernetesPart.name,
		module:   kubernetesPart.module,
		variable: kubernetesPart.variable,
		programs: []program{{"kubectl", "k8s.io/kubernetes/cmd/kubectl", "1 min"}},
		ldflags:  kubernetesVersionFlags,
	}
	// kubeletPart is built only for a real node, as is corednsPart. It stays at a
	// version that has run with containerd 1.6, which Debian 12 has: 1.37 warns that
	// the one after it does without the fallbacks for it. The API server may be up to
	// three minor versions newer than a kubelet.
	kubeletPart = Part{
		name:     kubernetesPart.name,
		only:     "1.36.3",
		module:   kubernetesPart.module,
		programs: []program{{"kubelet", "k8s.io/kubernetes/cmd/kubelet", "2 min"}},
		ldflags:  kubernetesVersionFlags,
	}
	corednsPart = Part{
		name:     "coredns",
		module:   "github.com/coredns/coredns",
		programs: []program{{"coredns", ".", "2 min"}},
	}
	volcanoPart = Part{
		name:     "volcano",
		module:   "volcano.sh/volcano",
		variable: VolcanoVariable,
		amends:   "volcano.sh/apis",
		programs: []program{
			{"vc-scheduler", "volcano.sh/volcano/cmd/scheduler", "3 min"},
			{"vc-controller-manager", "volcano.sh/volcano/cmd/controller-manager", "30 s"},
			{"vc-webhook-manager", "volcano.sh/volcano/cmd/webhook-manager", "15 s"},
		},
		files: []string{volcanoManifest},
	}
	kwokPart = Part{
		name:     "kwok",
		module:   "sigs.k8s.io/kwok",
		programs: []program{{"kwok", "sigs.k8s.io/kwok/cmd/kwok", "1 min"}},
		files:    stageFiles,
	}
	// TrainingOperator is built only where a suite starts it: about 2 minutes on two cores the first time.
	TrainingOperator = Part{
		name:     "trainingoperator",
		module:   "github.com/kubeflow/training-operator",
		programs: []program{{"training-operator", "github.com/kubeflow/training-operator/cmd/training-operator.v1", "2 min"}},
		files:    TrainingOperatorManifests,
	}
	// NotebookController is Kubeflow's, built only where a suite starts it: about 2 minutes on two cores the first time.
	NotebookController = Part{
		name:   "notebookcontroller",
		module: "github.com/kubeflow/kubeflow/components/notebook-controller",
		programs: []program{
			{"notebook-controller", "github.com/kubeflow/kubeflow/components/notebook-controller", "2 min"},
		},
		files: NotebookControllerManifests,
	}
	// objectStorePart is built only where something starts it.
	objectStorePart = Part{
		name:     versitygw,
		module:   "github.com/versity/versitygw",
		programs: []program{{versitygw, "github.com/versity/versitygw/cmd/versitygw", "3 min"}},
	}
	// Prometheus is built only where something starts it, and no Prometheus is on
	// PATH: about 7 minutes on two cores the first time.
	Prometheus = Part{
		name:   "prometheus",
		module: "github.com/prometheus/prometheus",
		programs: []program{
			{"prometheus", "github.com/prometheus/prometheus/cmd/prometheus", "4 min"},
			{"promtool", "github.com/prometheus/prometheus/cmd/promtool", "3 min"},
		},
		tags: "remove_all_sd", // without service discovery, which is most of what it is built of
	}
	// Traefik is a gateway of the Gateway API and an Ingress controller, built only
	// where a suite starts it: about 10 minutes on two cores the first time. It has no
	// later version because of a module that 3.7 needs and the module proxy has not.
	Traefik = Part{
		name:     "traefik",
		module:   "github.com/traefik/traefik/v3",
		programs: []program{{"traefik", "github.com/traefik/traefik/v3/cmd/traefik", "10 min"}},
	}
	// OLM is the Operator Lifecycle Manager, built only where a suite starts it: about
	// 3 minutes on two cores the first time.
	OLM = Part{
		name:   "olm",
		module: "github.com/operator-framework/operator-lifecycle-manager",
		programs: []program{
			{"olm", "github.com/operator-framework/operator-lifecycle-manager/cmd/olm", "2 min"},
			{"catalog", "github.com/operator-framework/operator-lifecycle-manager/cmd/catalog", "10 s"},
			{"opm", "github.com/operator-framework/operator-registry/cmd/opm", "20 s"},
		},
		files: OLMDefinitions,
		tags:  "json1,containers_image_openpgp", // as OLM builds them; without C libraries
	}
)

// clusterParts are the parts every cluster needs. Volcano's are among them also
// for a cluster that starts without: it may be added later.
var clusterParts = []Part{etcdPart, kubernetesPart, volcanoPart, kwokPart}

// kubernetesVersionFlags makes the programs report their version: built as
// plain modules they would say v0.0.0, which clients refuse to negotiate with.
func kubernetesVersionFlags(version string) string {
	const pkg = "k8s.io/component-base/version."
	major, minor, _ := strings.Cut(majorMinor(version), ".")
	return fmt.Sprintf("-X %[1]sgitVersion=%[2]s -X %[1]sgitMajor=%[3]s -X %[1]sgitMinor=%[4]s",
		pkg, version, major, minor)
}

// majorMinor returns "1.36" for "v1.36.3".
func majorMinor(version string) string {
	fields := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(fields) < 2 {
		return fields[0]
	}
	return fields[0] + "." + fields[1]
}
