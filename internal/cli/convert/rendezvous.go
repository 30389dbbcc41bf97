package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// maxProcesses bounds spec.framework.nprocPerNode.
const maxProcesses = 256

// torchrunRestarts is what Tideline tells torchrun for PET_MAX_RESTARTS unless the template does.
const torchrunRestarts = 100

const losingCosts = "each loss of a worker costs every other worker one of torchrun's restarts, " +
	"and with too few of them a job that gives workers away stops"

// processes carries over how many processes torchrun starts in each worker.
func (c *conversion) processes() {
	path, asked := "spec.nprocPerNode", ptr.Deref(c.in.Spec.NprocPerNode, "")
	if e := c.in.Spec.ElasticPolicy; e != nil && e.NProcPerNode != nil {
		path, asked = "spec.elasticPolicy.nProcPerNode", strconv.Itoa(int(*e.NProcPerNode))
	}
	gpus := rendezvous.GPUs(c.trainer())
	instead := fmt.Sprintf("Tideline tells torchrun to start %d in each worker", max(1, gpus))
	n, err := strconv.ParseInt(asked, 10, 32)
	switch {
	case asked == "" || asked == "auto":
		c.autoProcesses(path, asked, gpus, instead)
	case err == nil && n >= 1 && n <= maxProcesses:
		c.out.Spec.Framework.NprocPerNode = ptr.To(int32(n))
		if n > 1 && c.startsOther() {
			c.note(path, n, "torchrun starts so many processes in each worker", "let the script start none of its own")
		}
	case err == nil:
		c.note(path, n, fmt.Sprintf("the number may be 1 to %d; it is left out, and %s", maxProcesses, instead), setProcesses)
	case asked == "cpu":
		c.note(path, asked, "it means one process for each CPU of the node, however many the container may use; "+instead, setProcesses)
	case asked != "gpu":
		c.note(path, asked, "torchrun does not know it; it is left out, and "+instead, setProcesses)
	case gpus == 0:
		c.note(path, asked, "the container asks for no GPUs that Tideline could count; "+instead, setProcesses)
	}
	if c.out.Spec.Framework.NprocPerNode == nil {
		c.masterProcesses(gpus, instead)
	}
}

const setProcesses = "set spec.framework.nprocPerNode to the number that you want"

// autoProcesses leaves the number to Tideline where it means what auto means to training-operator: one for each GPU.
func (c *conversion) autoProcesses(path, asked string, gpus int64, instead string) {
	switch {
	case gpus > 1 && c.startsOther():
		// getNprocPerNodeInt: WORLD_SIZE counts one process for each pod.
		c.out.Spec.Framework.NprocPerNode = ptr.To[int32](1)
		c.note(path, shownOrNil(asked), fmt.Sprintf(
			"training-operator counts one process for each pod, so torchrun starts 1 in each worker of %d GPUs", gpus),
			fmt.Sprintf("set spec.framework.nprocPerNode to %d if each process shall have one GPU", gpus))
	case gpus == 0 && c.startsTorchrun():
		c.note(path, shownOrNil(asked), "auto, training-operator's default, means one process for each CPU of a node without GPUs; "+
			instead, setProcesses)
	}
}

// masterProcesses says that worker 0 starts as many processes as the others, whatever GPUs it has.
func (c *conversion) masterProcesses(gpus int64, instead string) {
	m := c.out.Spec.Master
	if m == nil || m.Resources == nil {
		return
	}
	first := c.trainer().DeepCopy()
	first.Resources = *m.Resources
	if n := rendezvous.GPUs(first); n != gpus {
		c.note(replicaPath(master)+".template.spec.containers["+kubeflowv1.PyTorchJobDefaultContainerName+"].resources",
			first.Resources, fmt.Sprintf("worker 0 has %d GPUs and the others %d; %s", n, gpus, instead),
			"give worker 0 as many, or "+setProcesses)
	}
}

// shownOrNil is a value, or nil for a field that is not set.
func shownOrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

const (
	leastPort = 1024
	mostPort  = 65535
)

// rendezvous carries over how the workers find each other.
func (c *conversion) rendezvous() {
	c.port0()
	e := c.in.Spec.ElasticPolicy
	if e == nil {
		return
	}
	const path = "spec.elasticPolicy"
	if b := ptr.Deref(e.RDZVBackend, kubeflowv1.BackendC10D); b != kubeflowv1.BackendC10D {
		c.note(path+".rdzvBackend", string(b), "the rendezvous is c10d's, with its store on worker 0; it is left out",
			"remove the server of that backend if nothing else uses it")
	}
	if e.RDZVHost != nil {
		c.note(path+".rdzvHost", *e.RDZVHost, "the store is always on worker 0; it is left out", "")
	}
	if e.RDZVID != nil {
		c.note(path+".rdzvId", *e.RDZVID, "each attempt has an id of its own, so that no worker joins a stale one; it is left out", "")
	}
	if ptr.Deref(e.Standalone, false) {
		c.note(path+".standalone", true, "each pod trains by itself with training-operator; Tideline's workers train together",
			"for independent trainings, create a job of one worker for each")
	}
	if len(e.Metrics) > 0 {
		c.note(path+".metrics", e.Metrics, "there is no HorizontalPodAutoscaler: the job grows to spec.maxReplicas on what is free and"+
			" gives way to waiting gangs; it is left out", "")
	}
	if e.MaxRestarts != nil {
		c.setEnv("PET_MAX_RESTARTS", strconv.Itoa(int(*e.MaxRestarts)))
		if *e.MaxRestarts < torchrunRestarts {
			c.note(path+".maxRestarts", *e.MaxRestarts, "it is carried over as the variable PET_MAX_RESTARTS; "+losingCosts,
				fmt.Sprintf("remove the variable for Tideline's %d", torchrunRestarts))
		}
	}
	c.conf(e)
}

// port0 carries over the port of the rendezvous on worker 0: rdzvPort, else the container's pytorchjob-port.
func (c *conversion) port0() {
	path, port := "spec.elasticPolicy.rdzvPort", (*int32)(nil)
	if e := c.in.Spec.ElasticPolicy; e != nil {
		port = e.RDZVPort
	}
	if port == nil {
		// getPortFromPyTorchJob: the Worker's of an elastic job, the Master's of another.
		role := c.role()
		if c.in.Spec.ElasticPolicy == nil && c.hasMaster() {
			role = master
		}
		path = replicaPath(role) + ".template.spec.containers[" + kubeflowv1.PyTorchJobDefaultContainerName + "].ports[" +
			kubeflowv1.PyTorchJobDefaultPortName + "]"
		for _, container := range c.in.Spec.PyTorchReplicaSpecs[role].Template.Spec.Containers {
			for _, p := range container.Ports {
				if isPyTorch(container) && p.Name == kubeflowv1.PyTorchJobDefaultPortName {
					port = ptr.To(p.ContainerPort)
				}
			}
		}
	}
	if port == nil {
		return
	}
	if *port < leastPort || *port > mostPort {
		c.note(path, *port, fmt.Sprintf("spec.framework.port may be %d to %d; it is left out, and the port is %d",
			leastPort, mostPort, v1beta1.DefaultPort), "")
		return
	}
	c.out.Spec.Framework.Port = port
}

// Bounds of spec.framework.torchrun.rdzvConf.
const (
	maxConf      = 16
	maxConfKey   = 64
	maxConfValue = 256
)

var (
	confKey   = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	confValue = regexp.MustCompile(`^[^,=\s]+$`)
)

// conf carries over rdzvConf: the timeouts into their own fields, the rest as it is.
func (c *conversion) conf(e *kubeflowv1.ElasticPolicy) {
	r := &v1beta1.Torchrun{}
	defer func() {
		if !equality.Semantic.DeepEqual(r, &v1beta1.Torchrun{}) {
			c.out.Spec.Framework.Torchrun = r
		}
	}()
	timeouts := map[string]struct {
		field       **int32
		name        string
		least, most int32
		otherwise   int32
	}{
		"join_timeout":      {&r.JoinTimeoutSeconds, "joinTimeoutSeconds", 30, 86400, v1beta1.DefaultJoinTimeoutSeconds},
		"last_call_timeout": {&r.LastCallTimeoutSeconds, "lastCallTimeoutSeconds", 1, 3600, v1beta1.DefaultLastCallTimeoutSeconds},
		"read_timeout":      {&r.ReadTimeoutSeconds, "readTimeoutSeconds", 300, 86400, v1beta1.DefaultReadTimeoutSeconds},
	}
	foreign := ptr.Deref(e.RDZVBackend, kubeflowv1.BackendC10D) != kubeflowv1.BackendC10D
	for i, pair := range e.RDZVConf {
		path := "spec.elasticPolicy.rdzvConf[" + pair.Key + "]"
		t, isTimeout := timeouts[pair.Key]
		switch {
		case slices.ContainsFunc(e.RDZVConf[i+1:], func(later kubeflowv1.RDZVConf) bool { return later.Key == pair.Key }):
			c.note(path, pair.Value, "the key is given again, and the last one counts; it is left out", "")
		case pair.Key == "is_host":
			c.note(path, pair.Value, "Tideline tells worker 0 to host the store, and the others not to; it is left out", "")
		case isTimeout:
			if n := seconds(pair.Value); n == nil || *n < t.least || *n > t.most {
				c.note(path, pair.Value, fmt.Sprintf("spec.framework.torchrun.%s may be %d to %d; it is left out, and %d s apply",
					t.name, t.least, t.most, t.otherwise), "")
			} else {
				*t.field = n
			}
		case foreign:
			c.note(path, pair.Value, "it is for the backend "+string(*e.RDZVBackend)+", and the rendezvous is c10d's; it is left out", "")
		case !confKey.MatchString(pair.Key) || len(pair.Key) > maxConfKey ||
			!confValue.MatchString(pair.Value) || len([]rune(pair.Value)) > maxConfValue:
			c.note(path, pair.Value, "torchrun could not tell its key from its value, or would cut it at a comma; it is left out",
				"give it a key of lower-case letters, digits and underscores, and a value without commas, equals signs and spaces")
		case len(r.RdzvConf) == maxConf:
			c.note(path, pair.Value, fmt.Sprintf("spec.framework.torchrun.rdzvConf may have %d pairs; it is left out", maxConf), "")
		default:
			r.RdzvConf = append(r.RdzvConf, v1beta1.RdzvConf{Key: pair.Key, Value: pair.Value})
		}
	}
}
