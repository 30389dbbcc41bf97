package convert

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// pod edits the pods of both roles alike.
func pod(edit func(*corev1.PodSpec)) func(*pytorchJob) {
	return func(j *pytorchJob) { both(j, func(t *corev1.PodTemplateSpec) { edit(&t.Spec) }) }
}

func TestTemplate(t *testing.T) {
	const tier = ": the priority follows from the tier; it is left out; set spec.tier, for example exploratory, " +
		"small-traffic or main-traffic"
	const volcano = ": Tideline speaks to Volcano for its pods; it is left out; see docs/convert.md for what takes its place"
	const spec = "spec.template.spec"
	check(t, map[string]rule{
		"what Tideline does not decide is kept": {pod(func(s *corev1.PodSpec) {
			s.ServiceAccountName, s.TerminationGracePeriodSeconds = "trainer", ptr.To[int64](5)
			s.NodeSelector = map[string]string{"zone": "a"}
			s.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}), map[string]string{
			spec + ".serviceAccountName": `"trainer"`, spec + ".terminationGracePeriodSeconds": "5",
			spec + ".nodeSelector": `{"zone":"a"}`,
			spec + ".volumes":      `[{"emptyDir":{},"name":"scratch"}]`, "spec.master": "null",
		}, nil},
		"volcano as the scheduler": {pod(func(s *corev1.PodSpec) { s.SchedulerName = "volcano" }),
			map[string]string{spec + ".schedulerName": "null"}, nil},
		"another scheduler": {pod(func(s *corev1.PodSpec) { s.SchedulerName = "yunikorn" }),
			map[string]string{spec + ".schedulerName": "null"},
			[]string{podPath + ".schedulerName = yunikorn: Tideline schedules with Volcano; it is left out"}},
		"priority class": {pod(func(s *corev1.PodSpec) { s.PriorityClassName = "high" }),
			map[string]string{spec + ".priorityClassName": "null"},
			[]string{podPath + ".priorityClassName = high" + tier}},
		"priority": {pod(func(s *corev1.PodSpec) { s.Priority = ptr.To[int32](7) }), map[string]string{spec + ".priority": "null"},
			[]string{podPath + ".priority = 7" + tier}},
		"preemption policy": {pod(func(s *corev1.PodSpec) { s.PreemptionPolicy = ptr.To(corev1.PreemptNever) }),
			map[string]string{spec + ".preemptionPolicy": "null"},
			[]string{podPath + ".preemptionPolicy = Never" + tier}},
		"node": {pod(func(s *corev1.PodSpec) { s.NodeName = "n1" }), map[string]string{spec + ".nodeName": "null"},
			[]string{podPath + ".nodeName = n1: it would bypass the scheduler; it is left out; use nodeSelector, for example " +
				"kubernetes.io/hostname"}},
		"gates": {pod(func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/later"}} }),
			map[string]string{spec + ".schedulingGates": "null"},
			[]string{podPath + `.schedulingGates = [{"name":"example.com/later"}]: Volcano places no pod that a gate holds; they are ` +
				`left out; set spec.suspend to hold the job back`}},
		"host name": {pod(func(s *corev1.PodSpec) { s.Hostname, s.Subdomain = "h", "d" }),
			map[string]string{spec + ".hostname": "null", spec + ".subdomain": "null"},
			[]string{podPath + ".hostname = h: each worker has the name of its pod, NAME-worker-INDEX; it is left out",
				podPath + ".subdomain = d: it is the job's headless Service, NAME-workers; it is left out"}},
		"restart policy": {pod(func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyNever }),
			map[string]string{spec + ".restartPolicy": "null"},
			[]string{podPath + ".restartPolicy = Never: training-operator put the role's restartPolicy in its place, so it had no " +
				"effect; it is left out"}},
		"restart policy that is ours": {pod(func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyOnFailure }), nil, nil},
		"metadata": {func(j *pytorchJob) {
			both(j, func(t *corev1.PodTemplateSpec) {
				t.Name = "ignored"
				t.Labels = map[string]string{"team": "ads", "tideline.io/part": "core", "volcano.sh/x": "y"}
				t.Annotations = map[string]string{"note": "x", "scheduling.k8s.io/group-name": "g", "tideline.io/progress": "1",
					"volcano.sh/numa-topology-policy": "restricted", "volcano.sh/preemptable": "true",
					"kubectl.kubernetes.io/default-container":                "pytorch",
					"container.apparmor.security.beta.kubernetes.io/pytorch": "localhost/p",
				}
				t.Finalizers = []string{"example.com/keep"}
			})
		}, map[string]string{"spec.template.metadata": `{"annotations":{` +
			`"container.apparmor.security.beta.kubernetes.io/trainer":"localhost/p",` +
			`"kubectl.kubernetes.io/default-container":"trainer","note":"x","volcano.sh/numa-topology-policy":"restricted"},` +
			`"labels":{"team":"ads"}}`},
			[]string{
				workerPath + ".template.metadata.annotations[scheduling.k8s.io/group-name] = g" + volcano,
				workerPath + ".template.metadata.annotations[tideline.io/progress] = 1" + volcano,
				workerPath + ".template.metadata.annotations[volcano.sh/preemptable] = true" + volcano,
				workerPath + ".template.metadata.labels[tideline.io/part] = core" + volcano,
				workerPath + ".template.metadata.labels[volcano.sh/x] = y" + volcano,
				workerPath + `.template.metadata.finalizers = ["example.com/keep"]: Tideline's pods have no finalizers; they are left out`,
			}},
		"port": {pod(func(s *corev1.PodSpec) {
			s.Containers[0].Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9090},
				{Name: "pytorchjob-port", ContainerPort: 23456}}
		}), map[string]string{"spec.framework.port": "23456", trainer + ".ports": `[{"containerPort":9090,"name":"metrics"}]`},
			[]string{torchPath + ".ports[pytorchjob-port] = 23456: the port of the rendezvous is spec.framework.port; it is left " +
				"out of the container; let NetworkPolicies that name it name that port"}},
		"the elastic policy's port comes first": {func(j *pytorchJob) {
			elastic(j).RDZVPort = ptr.To[int32](29500)
			trainerOf(j).Ports = []corev1.ContainerPort{{Name: "pytorchjob-port", ContainerPort: 23456}}
		}, map[string]string{"spec.framework.port": "29500"}, []string{torchPath + ".ports[pytorchjob-port] = 23456: the port " +
			"of the rendezvous is spec.framework.port; it is left out of the container; let NetworkPolicies that name it name " +
			"that port"}},
		"labels of training-operator": {pod(func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
				WhenUnsatisfiable: "DoNotSchedule",
				LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": "ctr"}}}}
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey:   "zone",
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": "ctr"}},
				}},
			}}
		}), nil, []string{
			podPath + `.affinity = {"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelect…: it selects ` +
				`by labels training.kubeflow.org/…, which Tideline's pods do not have; select by tideline.io/job, whose value is the ` +
				`job's name`,
			podPath + `.topologySpreadConstraints = ` +
				`[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSe…: it selects by labels ` +
				`training.kubeflow.org/…, which Tideline's pods do not have; select by tideline.io/job, whose value is the job's name`}},
		"PYTHONUNBUFFERED of one's own": {pod(func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: "PYTHONUNBUFFERED", Value: "x"}}
		}), map[string]string{trainer + ".env": `[{"name":"PYTHONUNBUFFERED","value":"x"}]`}, nil},
	})
}

func TestReservedVariables(t *testing.T) {
	cases := map[string]rule{}
	for _, name := range slices.Concat(reserved, displaced) {
		cases[name] = rule{pod(func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: name, Value: "x"}, {Name: "KEPT", Value: "y"}}
		}), map[string]string{trainer + ".env": `[{"name":"KEPT","value":"y"},{"name":"PYTHONUNBUFFERED","value":"1"}]`},
			[]string{torchPath + ".env[" + name + "] = x: torchrun and Tideline set it; it is left out"}}
	}
	cases["from elsewhere"] = rule{pod(func(s *corev1.PodSpec) {
		s.Containers[0].Env = []corev1.EnvVar{{Name: "RANK",
			ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
	}), nil, []string{torchPath + `.env[RANK] = {"fieldRef":{"fieldPath":"metadata.name"}}: torchrun and Tideline set it; ` +
		`it is left out`}}
	check(t, cases)
}

func TestContainers(t *testing.T) {
	const sidecar = ": training-operator gives torchrun's variables to every container, Tideline to the training container " +
		"alone; a container that never exits keeps the worker from succeeding, as before; move a sidecar to initContainers " +
		"with restartPolicy Always"
	cpu := func(container string) *corev1.ResourceFieldSelector {
		return &corev1.ResourceFieldSelector{ContainerName: container, Resource: "limits.cpu"}
	}
	var crowd []string
	for i := range 16 {
		crowd = append(crowd, podPath+".containers[c"+strconv.Itoa(i)+"] = i"+sidecar)
	}
	check(t, map[string]rule{
		"a sidecar, before": {pod(func(s *corev1.PodSpec) {
			s.Containers = []corev1.Container{{Name: "logs", Image: "logs:1"}, s.Containers[0]}
		}), map[string]string{"spec.template.spec.containers.0.name": `"logs"`, "spec.template.spec.containers.0.env": "null",
			"spec.template.spec.containers.1.name": `"trainer"`, "spec.template.spec.containers.1.env.0.name": `"PYTHONUNBUFFERED"`},
			[]string{podPath + ".containers[logs] = logs:1" + sidecar}},
		"a container that has our name": {pod(func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, corev1.Container{Name: "trainer", Image: "t:1"})
			s.InitContainers = []corev1.Container{{Name: "trainer-sidecar", Image: "i:1"}}
		}), map[string]string{"spec.template.spec.containers.0.name": `"trainer"`, "spec.template.spec.containers.0.image": `"ctr:1"`,
			"spec.template.spec.containers.1.name": `"trainer-sidecar-2"`},
			[]string{podPath + ".containers[trainer] = t:1" + sidecar}},
		"what speaks of the container by its name": {pod(func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: "CPUS", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: cpu("pytorch")}}}
			s.Volumes = []corev1.Volume{
				{Name: "d", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
					Items: []corev1.DownwardAPIVolumeFile{{Path: "cpu", ResourceFieldRef: cpu("pytorch")}}}}},
				{Name: "p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{
						Items: []corev1.DownwardAPIVolumeFile{{Path: "cpu", ResourceFieldRef: cpu("pytorch")}}}}}}}},
			}
		}), map[string]string{
			trainer + ".env.0.valueFrom.resourceFieldRef.containerName":                                           `"trainer"`,
			"spec.template.spec.volumes.0.downwardAPI.items.0.resourceFieldRef.containerName":                     `"trainer"`,
			"spec.template.spec.volumes.1.projected.sources.0.downwardAPI.items.0.resourceFieldRef.containerName": `"trainer"`,
		}, nil},
		"too many": {pod(func(s *corev1.PodSpec) {
			for i := range 16 {
				s.Containers = append(s.Containers, corev1.Container{Name: "c" + strconv.Itoa(i), Image: "i"})
			}
		}), nil, append(crowd, podPath+".containers = 17: a template may have 16 containers; it will be refused; join some of them")},
		"too many variables": {pod(func(s *corev1.PodSpec) {
			for i := range 1001 {
				s.Containers[0].Env = append(s.Containers[0].Env, corev1.EnvVar{Name: "V" + strconv.Itoa(i)})
			}
		}), nil, []string{torchPath + ".env = 1002: a container may have 1000 variables, those that are added here included; " +
			"it will be refused; put them into a ConfigMap and name it in envFrom"}},
		"too many variables with ours": {pod(func(s *corev1.PodSpec) {
			for i := range 1000 {
				s.Containers[0].Env = append(s.Containers[0].Env, corev1.EnvVar{Name: "V" + strconv.Itoa(i)})
			}
		}), nil, []string{torchPath + ".env = 1001: a container may have 1000 variables, those that are added here included; " +
			"it will be refused; put them into a ConfigMap and name it in envFrom"}},
	})
}

func TestMaster(t *testing.T) {
	first := func(edit func(*corev1.PodTemplateSpec)) func(*pytorchJob) {
		return func(j *pytorchJob) { edit(&masterOf(j).Template) }
	}
	const podPath, torchPath = masterPath + ".template.spec", masterPath + ".template.spec.containers[pytorch]"
	const theirs = ", and worker 0 is made from their template; give the workers the same, or let the script do it where RANK is 0"
	labels := map[string]string{}
	for i := range 33 {
		labels[fmt.Sprintf("l%02d", i)] = "v"
	}
	check(t, map[string]rule{
		"resources": {first(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Resources = gpus(1)
			t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("8")}
		}), map[string]string{"spec.master": `{"resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"cpu":"8"}}}`,
			trainer + ".resources": `{"limits":{"nvidia.com/gpu":"1"}}`}, nil},
		"the same resources in other words": {func(j *pytorchJob) {
			masterOf(j).Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1000m")}
			trainerOf(j).Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
		}, map[string]string{"spec.master": "null"}, nil},
		"no resources": {first(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }),
			map[string]string{"spec.master": `{"resources":{}}`},
			[]string{torchPath + ".resources = {}: worker 0 has 0 GPUs and the others 1; Tideline tells torchrun to start 1 in " +
				"each worker; give worker 0 as many, or set spec.framework.nprocPerNode to the number that you want"}},
		"node selector": {func(j *pytorchJob) {
			masterOf(j).Template.Spec.NodeSelector = map[string]string{"zone": "b", "disk": "ssd", "kind": "gpu"}
			podOf(j).NodeSelector = map[string]string{"zone": "a", "kind": "gpu"}
		}, map[string]string{"spec.master": `{"nodeSelector":{"disk":"ssd","zone":"b"}}`,
			"spec.template.spec.nodeSelector": `{"kind":"gpu","zone":"a"}`}, nil},
		"a label less": {func(j *pytorchJob) { podOf(j).NodeSelector = map[string]string{"zone": "a"} },
			map[string]string{"spec.master": "null"},
			[]string{podPath + ".nodeSelector[zone] is not set: the workers ask for a, and so does worker 0: " +
				"spec.master.nodeSelector adds labels and takes none away; move the label from the template to a nodeSelector that " +
				"the Master can bear"}},
		"too many labels": {first(func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = labels }), nil,
			[]string{podPath + ".nodeSelector = 33: spec.master.nodeSelector may have 32 labels; it will be refused; ask for fewer"}},
		"command, image, variables": {func(j *pytorchJob) {
			c := &masterOf(j).Template.Spec.Containers[0]
			c.Command, c.Image = []string{"torchrun", "train.py", "--save"}, "ctr:2"
			c.Env = []corev1.EnvVar{{Name: "SAVE", Value: "1"}, {Name: "LOG", Value: "debug"}}
			trainerOf(j).Env = []corev1.EnvVar{{Name: "LOG", Value: "info"}, {Name: "EXTRA", Value: "e"}}
		}, map[string]string{trainer + ".image": `"ctr:1"`, trainer + ".env.0.value": `"info"`}, []string{
			torchPath + `.command = ["torchrun","train.py","--save"]: the workers have ["torchrun","train.py"]` + theirs,
			torchPath + `.env[EXTRA] is not set: the workers have {"name":"EXTRA","value":"e"}` + theirs,
			torchPath + ".env[LOG].value = debug: the workers have info" + theirs,
			torchPath + `.env[SAVE] = {"name":"SAVE","value":"1"}: the workers do not have it` + theirs,
			torchPath + ".image = ctr:2: the workers have ctr:1" + theirs,
		}},
		"a list without names, and metadata": {first(func(t *corev1.PodTemplateSpec) {
			t.Spec.Tolerations = []corev1.Toleration{{Key: "k"}}
			t.Labels = map[string]string{"role": "m"}
			t.Spec.ServiceAccountName = "sa"
		}), map[string]string{"spec.template.spec.tolerations": "null"}, []string{
			masterPath + `.template.metadata.labels = {"role":"m"}: the workers do not have it` + theirs,
			podPath + ".serviceAccountName = sa: the workers do not have it" + theirs,
			podPath + `.tolerations = [{"key":"k"}]: the workers do not have it` + theirs,
		}},
		"what has no effect is not compared": {first(func(t *corev1.PodTemplateSpec) {
			t.Name, t.Spec.RestartPolicy = "m", corev1.RestartPolicyAlways
		}), nil, nil},
	})
}
