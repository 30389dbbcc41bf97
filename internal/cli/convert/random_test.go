package convert

import (
	"math/rand/v2"
	"strings"
	"testing"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// dice make PyTorchJobs: mostly such as people write, with a value at the edge of what is possible, or beyond, here and there.
type dice struct{ *rand.Rand }

func one[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// maybe is one of the values half of the time, and nil otherwise.
func maybe[T any](d dice, of ...T) *T {
	if d.IntN(2) == 0 {
		return nil
	}
	return ptr.To(one(d, of...))
}

func (d dice) job() *pytorchJob {
	j := &pytorchJob{}
	j.Name = one(d, "ctr", "ctr", "ctr", "ctr", "a", "", "ctr.v2", "Ctr", "1ctr", "ctr-surplus", "ctr-merge",
		strings.Repeat("a", 51+d.IntN(6)))
	j.GenerateName = one(d, "", "", "ctr-", "c.", strings.Repeat("b", 46+d.IntN(6)))
	j.Annotations = d.words("team", "volcano.sh/queue", "scheduling.volcano.sh/queue-name")
	j.Labels = d.words("team", "kueue.x-k8s.io/queue-name", "tideline.io/job")
	j.Spec.NprocPerNode = maybe(d, "1", "8", "256", "257", "0", "-1", "auto", "cpu", "gpu", "x", "")
	j.Spec.PyTorchReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{}
	for _, r := range []kubeflowv1.ReplicaType{master, worker, worker, "Launcher"} {
		if n := d.IntN(8); n > 0 && (r != "Launcher" || n == 1) {
			j.Spec.PyTorchReplicaSpecs[r] = d.replicaSpec(r)
		}
	}
	if d.IntN(20) == 0 {
		j.Spec.PyTorchReplicaSpecs[worker] = nil
	}
	if d.IntN(2) == 0 {
		j.Spec.ElasticPolicy = d.elasticPolicy()
	}
	j.Spec.RunPolicy = kubeflowv1.RunPolicy{
		CleanPodPolicy:          maybe[kubeflowv1.CleanPodPolicy](d, "", "All", "None", "Running", "All", "None", "Running", "x"),
		TTLSecondsAfterFinished: maybe[int32](d, 0, 60, 31536000, 31536001, 1<<31-1, -1),
		ActiveDeadlineSeconds:   maybe[int64](d, 1, 60, 31536000, 31536001, 1<<62, 0),
		BackoffLimit:            maybe[int32](d, 0, 3, 100, 101, 1<<31-1, -1),
		Suspend:                 maybe(d, true, false),
		ManagedBy:               maybe(d, "", kubeflowv1.KubeflowJobsController, kubeflowv1.MultiKueueController, "x"),
	}
	if d.IntN(2) == 0 {
		j.Spec.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{
			MinAvailable: maybe[int32](d, 0, 1, 4), Queue: one(d, "", "q"), PriorityClass: one(d, "", "p"),
			ScheduleTimeoutSeconds: maybe[int32](d, -1, 0, 1, 31536000, 31536001),
		}
	}
	return j
}

func (d dice) words(of ...string) map[string]string {
	m := map[string]string{}
	for _, key := range of {
		if d.IntN(3) == 0 {
			m[key] = one(d, "v", "")
		}
	}
	return m
}

func (d dice) replicaSpec(r kubeflowv1.ReplicaType) *kubeflowv1.ReplicaSpec {
	s := &kubeflowv1.ReplicaSpec{
		RestartPolicy: one[kubeflowv1.RestartPolicy](d, "", "", "OnFailure", "Always", "Never", "ExitCode", "ExitCode", "Never", "x"),
		Replicas:      maybe[int32](d, 1, 1, 1, 1, 1, 2),
	}
	if r == worker {
		s.Replicas = maybe[int32](d, 1, 2, 10, 4094, 4095, 4096, 4097, 0, -1, 1<<31-1)
	}
	s.Template.Labels = d.words("app", "volcano.sh/x", "tideline.io/part")
	s.Template.Annotations = d.words("a", "volcano.sh/x", "scheduling.volcano.sh/y", "scheduling.k8s.io/z", "tideline.io/w")
	p := &s.Template.Spec
	p.SchedulerName, p.PriorityClassName = one(d, "", "volcano", "x"), one(d, "", "high")
	p.Priority, p.PreemptionPolicy = maybe[int32](d, 0, 7), maybe(d, corev1.PreemptNever)
	p.NodeName, p.Hostname, p.Subdomain = one(d, "", "n"), one(d, "", "h"), one(d, "", "s")
	p.SchedulingGates = one(d, nil, nil, []corev1.PodSchedulingGate{{Name: "example.com/later"}})
	p.RestartPolicy = one(d, "", corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)
	p.NodeSelector = d.words("zone", "disk")
	if d.IntN(20) == 0 {
		for i := range 30 + d.IntN(6) {
			p.NodeSelector["l"+strings.Repeat("x", i)] = "v"
		}
	}
	names := []string{"pytorch"}
	if d.IntN(3) == 0 {
		names = append(names, one(d, "logs", "trainer", "trainer-sidecar"))
	}
	if d.IntN(20) == 0 {
		for i := range 13 + d.IntN(4) {
			names = append(names, "c"+strings.Repeat("x", i))
		}
	}
	if d.IntN(20) == 0 {
		names = names[1:]
	}
	d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		p.Containers = append(p.Containers, d.container(name))
	}
	if d.IntN(4) == 0 {
		p.InitContainers = []corev1.Container{d.container(one(d, "init", "trainer-sidecar-2"))}
	}
	return s
}

func (d dice) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: one(d, "ctr:1", "ctr:2")}
	words := []string{
		"torchrun", "python", "-m", "torch.distributed.run", "-c", "-u", "-X", "bash", "sh", "--nnodes", "--nnodes=2", "--rdzv_conf",
		"--standalone",
		"train.py", "$(RANK)", "$", "$(", "", "-", "--", "=", "ctr-master-0", "mpirun",
		"torchrun --nnodes=$WORLD_SIZE train.py", "\\\n", "é\x00",
	}
	for range d.IntN(5) {
		c.Command = append(c.Command, one(d, words...))
	}
	for range d.IntN(3) {
		c.Args = append(c.Args, one(d, words...))
	}
	variables := append([]string{"A", "PET_MAX_RESTARTS", "PYTHONUNBUFFERED", "PET_LOG_DIR"}, append(reserved, displaced...)...)
	d.Shuffle(len(variables), func(i, j int) { variables[i], variables[j] = variables[j], variables[i] })
	for _, name := range variables[:d.IntN(4)] {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: one(d, "", "1", "$(MASTER_ADDR)")})
	}
	if d.IntN(40) == 0 {
		for i := range 996 + d.IntN(6) {
			c.Env = append(c.Env, corev1.EnvVar{Name: "V" + strings.Repeat("x", i%500) + strings.Repeat("y", i/500)})
		}
	}
	if d.IntN(3) == 0 {
		c.Ports = []corev1.ContainerPort{{Name: "pytorchjob-port", ContainerPort: one[int32](d, 1, 1023, 1024, 23456, 65535)}}
	}
	if d.IntN(2) == 0 {
		c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(d.Int64N(9), resource.DecimalSI)}
	}
	return c
}

func (d dice) elasticPolicy() *kubeflowv1.ElasticPolicy {
	e := &kubeflowv1.ElasticPolicy{
		MinReplicas: maybe[int32](d, 1, 1, 2, 4, 4096, 0, -1), MaxReplicas: maybe[int32](d, 1, 2, 8, 101, 4095, 4096, 4097, 1<<31-1),
		RDZVBackend: maybe[kubeflowv1.RDZVBackend](d, "c10d", "c10d", "etcd", "static"),
		RDZVPort:    maybe[int32](d, -1, 0, 1023, 1024, 65535, 65536), RDZVHost: maybe(d, "", "h"), RDZVID: maybe(d, "", "i"),
		Standalone: maybe(d, true, false), NProcPerNode: maybe[int32](d, -1, 0, 1, 256, 257), MaxRestarts: maybe[int32](d, -1, 0,
			3, 100, 1000),
	}
	for range d.IntN(4) * d.IntN(8) {
		e.RDZVConf = append(e.RDZVConf, kubeflowv1.RDZVConf{
			Key: one(d, "join_timeout", "last_call_timeout", "read_timeout", "is_host", "close_timeout", "A", "", "a b",
				"k"+strings.Repeat("k", d.IntN(70))),
			Value: one(d, "1", "30", "29", "300", "299", "3600", "3601", "86400", "86401", "-1", "x", "", "a,b", "a=b", "a b", "é",
				strings.Repeat("é", 255+d.IntN(3))),
		})
	}
	if d.IntN(4) == 0 {
		e.Metrics = []autoscalingv2.MetricSpec{{Type: one(d, autoscalingv2.ResourceMetricSourceType, "")}}
	}
	return e
}

// Whatever a PyTorchJob says, Convert gives an answer, and admission's verdict on it is the one that the notes promise.
func TestRandomJobs(t *testing.T) {
	const jobs = 1000
	g := rules()
	var converted, refused int
	for seed := range uint64(jobs) {
		in := dice{rand.New(rand.NewPCG(seed, 0))}.job()
		out, notes := FromPyTorchJob(in)
		if out == nil {
			if len(notes) == 0 {
				t.Fatalf("seed %d: not converted, without a word", seed)
			}
			continue
		}
		converted++
		agree(t, g, out, notes)
		if c := (&draft{out: out}); len(c.trainer().Env) == 0 || c.trainer().Name != "trainer" {
			t.Errorf("seed %d: the training container is %v", seed, c.trainer())
		}
		for _, n := range notes {
			if n.Refused {
				refused++
				break
			}
		}
		for _, n := range notes {
			if n.Path == "" || n.Meaning == "" || strings.ContainsAny(n.String(), "\n\x00") {
				t.Errorf("seed %d: %q is not a line about a field", seed, n)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	// Otherwise the dice would show nothing.
	if converted < jobs/10 || refused < converted/20 || converted-refused < converted/4 {
		t.Errorf("of %d jobs %d were converted, and %d of them will be refused", jobs, converted, refused)
	}
	t.Logf("of %d jobs %d were converted, and %d of them will be refused", jobs, converted, refused)
}

// FuzzDocument: whatever is read, the command comes to an end, and says something when it prints nothing.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(document("a")))
	f.Add([]byte(service))
	f.Add([]byte("kind: List\napiVersion: v1\nitems: [null, {}, 7]"))
	f.Add([]byte("{\"apiVersion\":\"kubeflow.org/v1\",\"kind\":\"PyTorchJob\",\"spec\":{\"elasticPolicy\":{}}}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var stdout, stderr strings.Builder
		if code := run(strings.NewReader(string(in)), &stdout, &stderr, "-f", "-"); code != 0 && stderr.Len() == 0 {
			t.Errorf("exit code %d without a word about %q", code, in)
		}
		if stdout.Len() == 0 && stderr.Len() == 0 {
			t.Errorf("nothing printed and nothing said about %q", in)
		}
	})
}
