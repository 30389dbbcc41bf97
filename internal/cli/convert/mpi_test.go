package convert

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const launcherJob = `apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: pi
  namespace: ads
spec:
  slotsPerWorker: 2
  runLauncherAsWorker: true
  runPolicy:
    cleanPodPolicy: Running
    backoffLimit: 3
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: mpi-launcher
            image: mpi:1
            command: [mpirun, -n, "4"]
            args: [/opt/pi, "it's"]
    Worker:
      replicas: 1
      template:
        spec:
          containers:
          - name: mpi-worker
            image: mpi:1
`

// mpiShell is said of a launcher that works as the workers do.
const mpiShell = "spec.mpiReplicaSpecs[Worker].template.spec.containers[mpi-worker].command is not set: all workers start " +
	"by one command, a shell: worker 0 runs the launcher's, the others sshd's, with Tideline's keys; have /bin/sh in the image"

// mpiAlways is said of every job with workers.
var mpiAlways = []string{
	mpiShell,
	"spec.sshAuthMountPath is not set: keys are in /etc/tideline/ssh, for which the operator needs the rights of component " +
		"ssh-keys; log in by ssh -F /etc/tideline/ssh/config",
	"spec.mpiReplicaSpecs[Worker].restartPolicy is not set: MPI operator leaves the others alone when a worker fails; Tideline " +
		"starts all workers again, as MPI cannot go on without one",
	"spec.runPolicy.backoffLimit = 3: it is spec.restarts.max now, 3, and counts failures of all workers, not of the launcher " +
		"alone, within windowSeconds (86400)",
}

func mpiMain(j *MPIJob, role kubeflowv1.ReplicaType) *corev1.Container {
	return &j.Spec.MPIReplicaSpecs[role].Template.Spec.Containers[0]
}

func TestMPIJob(t *testing.T) {
	g := rules()
	const script = `if [ "$JAX_PROCESS_ID" != 0 ]; then exec /usr/sbin/sshd -De -o ` +
		`AuthorizedKeysFile=/etc/tideline/ssh/authorized_keys -o StrictModes=no; fi; exec "$@"`
	for name, c := range map[string]struct {
		edit func(*MPIJob)
		has  map[string]string
		says []string
	}{
		"a launcher that works": {func(*MPIJob) {}, map[string]string{
			"spec.minReplicas": "2", "spec.maxReplicas": "2", "spec.master": "null",
			"spec.framework":                   `{"nprocPerNode":2,"ssh":"KeyPair","type":"Custom"}`,
			"spec.successPolicy":               `{"completionGraceSeconds":0}`,
			"spec.restarts.max":                "3",
			"spec.cleanup":                     `{"podPolicy":"Running"}`,
			trainer + ".command":               string(must(json.Marshal([]string{"/bin/sh", "-c", script, "launcher"}))),
			trainer + ".args":                  `["mpirun","-n","4","/opt/pi","it's"]`,
			trainer + ".name":                  `"mpi-worker"`,
			trainer + ".env.0":                 `{"name":"OMPI_MCA_orte_keep_fqdn_hostnames","value":"true"}`,
			trainer + ".env.1":                 `{"name":"OMPI_MCA_orte_default_hostfile","value":"/etc/tideline/hostfile"}`,
			trainer + ".env.2.value":           `"-o ConnectionAttempts=10 -F /etc/tideline/ssh/config"`,
			trainer + ".env.3":                 `{"name":"OMPI_MCA_orte_set_default_slots","value":"2"}`,
			"spec.failurePolicy":               "null",
			"spec.template.spec.restartPolicy": "null",
		}, nil},
		"a launcher of other resources": {func(j *MPIJob) { mpiMain(j, worker).Resources = gpus(2) },
			map[string]string{"spec.master": `{"resources":{}}`}, nil},
		"a launcher alone": {func(j *MPIJob) { delete(j.Spec.MPIReplicaSpecs, worker); j.Spec.RunLauncherAsWorker = nil },
			map[string]string{"spec.minReplicas": "1", trainer + ".command": `["mpirun","-n","4"]`, "spec.successPolicy": "{}",
				"spec.framework": `{"nprocPerNode":2,"type":"Custom"}`, trainer + ".env": "null"}, nil},
		"what else is said": {func(j *MPIJob) {
			s := &j.Spec
			s.RunPolicy.CleanPodPolicy, s.RunPolicy.ActiveDeadlineSeconds = nil, ptr.To[int64](9)
			s.SlotsPerWorker, s.LauncherCreationPolicy = ptr.To[int32](0), "WaitForWorkersReady"
			s.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{Queue: "research"}
			mpiMain(j, launcher).Args = []string{"--hostfile=/etc/mpi/hostfile", "--host=pi-worker-0"}
			j.Status.Conditions = append(j.Status.Conditions, j.Status.Conditions...)
		}, map[string]string{"spec.cleanup": `{"podPolicy":"None"}`, "spec.deadlines.activeSeconds": "9"}, []string{
			"spec.slotsPerWorker = 0", "spec.launcherCreationPolicy = WaitForWorkersReady",
			".args[0] = --hostfile=/etc/mpi/hostfile: /etc/mpi/hostfile is MPI operator's: hosts are in",
			".args[1] = --host=pi-worker-0: the host names are pi-worker-0.pi-workers", "spec.runPolicy.cleanPodPolicy is not set",
			"spec.runPolicy.activeDeadlineSeconds = 9", "spec.runPolicy.schedulingPolicy.queue = research"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := parsed[MPIJob](t, launcherJob)
			c.edit(in)
			before := must(json.Marshal(in))
			out, notes := FromMPIJob(in)
			if out == nil {
				t.Fatalf("not converted: %v", notes)
			}
			if !bytes.Equal(must(json.Marshal(in)), before) {
				t.Error("it changed its argument")
			}
			for path, want := range c.has {
				if have := at(t, out, path); have != want {
					t.Errorf("%s is %s, want %s", path, have, want)
				}
			}
			said(t, notes, c.says, mpiAlways...)
			agree(t, g, out, notes)
		})
	}
}

func TestMPINotConverted(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*MPIJob)
		says []string
	}{
		"no name": {func(j *MPIJob) { j.Name = "" }, []string{"metadata.name is not set"}},
		"a launcher apart with a sidecar": {func(j *MPIJob) {
			j.Spec.RunLauncherAsWorker = nil
			spec := &j.Spec.MPIReplicaSpecs[launcher].Template.Spec
			spec.Containers = append(spec.Containers, corev1.Container{Name: "side", Image: "s"})
		}, []string{"does not have it; a role differs from the workers in image"}},
		"a launcher apart with a secret": {func(j *MPIJob) {
			j.Spec.RunLauncherAsWorker = nil
			mpiMain(j, launcher).Env = []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{}}}
		}, []string{"containers[mpi-launcher].env = "}},
		"a launcher apart that starts what its image starts": {func(j *MPIJob) {
			j.Spec.RunLauncherAsWorker = nil
			mpiMain(j, launcher).Command, mpiMain(j, launcher).Args = nil, nil
		}, []string{"command is not set: the launcher starts what its image starts"}},
		"no launcher": {func(j *MPIJob) { delete(j.Spec.MPIReplicaSpecs, launcher) },
			[]string{"spec.mpiReplicaSpecs[Launcher] is not set"}},
		"another role": {func(j *MPIJob) { j.Spec.MPIReplicaSpecs["Server"] = nil },
			[]string{"spec.mpiReplicaSpecs[Server] = Server"}},
		"no workers": {func(j *MPIJob) { j.Spec.MPIReplicaSpecs[worker].Replicas = nil }, []string{"[Worker].replicas is not set"}},
		"two launchers": {func(j *MPIJob) { j.Spec.MPIReplicaSpecs[launcher].Replicas = ptr.To[int32](2) },
			[]string{"[Launcher].replicas = 2"}},
		"another image": {func(j *MPIJob) { mpiMain(j, launcher).Image = "big:1" },
			[]string{".template.spec.containers[mpi-launcher].image = big:1: spec.mpiReplicaSpecs[Worker] has mpi:1"}},
		"a command that is not known": {func(j *MPIJob) { mpiMain(j, launcher).Command = nil },
			[]string{"spec.mpiReplicaSpecs[Launcher].template.spec.containers[mpi-launcher].command is not set"}},
		"Intel": {func(j *MPIJob) { j.Spec.MPIImplementation = "Intel" }, []string{"spec.mpiImplementation = Intel: Tideline writes"}},
		"what MPI operator refuses": {func(j *MPIJob) {
			j.Spec.MPIImplementation, j.Spec.SlotsPerWorker = "LAM", ptr.To[int32](-1)
			j.Spec.MPIReplicaSpecs[worker].RestartPolicy, j.Spec.RunPolicy.ManagedBy = "Always", ptr.To("me")
		}, []string{"[Worker].restartPolicy = Always", "spec.mpiImplementation = LAM", "spec.slotsPerWorker = -1", "managedBy = me"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := parsed[MPIJob](t, launcherJob)
			c.edit(in)
			out, notes := FromMPIJob(in)
			notConverted(t, out, notes, c.says)
		})
	}
}

// A launcher that trains nothing is what MPI operator has by default.
func TestMPILauncherBecomesARole(t *testing.T) {
	g := rules()
	in := parsed[MPIJob](t, launcherJob)
	in.Spec.RunLauncherAsWorker = nil
	main := mpiMain(in, launcher)
	main.Image, main.Env = "launch:1", []corev1.EnvVar{{Name: "STEPS", Value: "9"}}
	mpiMain(in, worker).Resources = gpus(2)
	mpiMain(in, worker).Env = []corev1.EnvVar{{Name: "NCCL_DEBUG", Value: "WARN"}}
	in.Spec.MPIReplicaSpecs[launcher].Template.Spec.NodeSelector = map[string]string{"pool": "cpu"}
	out, notes := FromMPIJob(in)
	if out == nil {
		t.Fatalf("not converted: %v", notes)
	}
	for path, want := range map[string]string{
		"spec.minReplicas": "2", "spec.maxReplicas": "2", "spec.master": "null",
		"spec.roles.0": `{"args":["/opt/pi","it's"],"command":["mpirun","-n","4"],"env":[{"name":"STEPS","value":"9"}],` +
			`"image":"launch:1",` +
			`"lead":true,"name":"launcher","nodeSelector":{"pool":"cpu"},"replicas":1,"resources":{}}`,
		"spec.successPolicy": `{"completionGraceSeconds":0}`,
		trainer + ".command": `["/usr/sbin/sshd","-De","-o","AuthorizedKeysFile=/etc/tideline/ssh/authorized_keys","-o",` +
			`"StrictModes=no"]`,
		trainer + ".args":  "null",
		trainer + ".image": `"mpi:1"`,
	} {
		if have := at(t, out, path); have != want {
			t.Errorf("%s is %s, want %s", path, have, want)
		}
	}
	said(t, notes, []string{"env[NCCL_DEBUG] is not set: the workers have this variable, and so has the launcher"}, mpiAlways[1:]...)
	agree(t, g, out, notes)

	in.Name = strings.Repeat("a", 52)
	_, notes = FromMPIJob(in)
	said(t, notes, []string{"env[NCCL_DEBUG] is not set",
		"the host name NAME-launcher-31 may have 63 characters; shorten the name to 51 characters"}, mpiAlways[1:]...)
}

// The command that starts both runs the launcher's words in worker 0 and the workers' in the others, whatever stands in them.
func TestOneCommandStartsLauncherAndWorkers(t *testing.T) {
	in := parsed[MPIJob](t, launcherJob)
	mpiMain(in, launcher).Command, mpiMain(in, launcher).Args = []string{"printf", "%s|", "it's", "$HOME"}, []string{"a b"}
	mpiMain(in, worker).Command = []string{"printf", "w:%s|", "it's", `"$HOME"`, "a  b"}
	out, notes := FromMPIJob(in)
	if out == nil {
		t.Fatal(notes)
	}
	c := out.Spec.Template.Spec.Containers[0]
	for index, want := range map[string]string{"0": "it's|$HOME|a b|", "1": `w:it's|w:"$HOME"|w:a  b|`} {
		cmd := exec.CommandContext(t.Context(), c.Command[0], append(c.Command[1:], c.Args...)...)
		cmd.Env = []string{"JAX_PROCESS_ID=" + index, "PATH=/bin:/usr/bin"}
		if said, err := cmd.CombinedOutput(); err != nil || string(said) != want {
			t.Errorf("worker %s says %q (%v), want %q", index, said, err, want)
		}
	}
}

// Training-operator's own MPIJob has a launcher apart in any case.
func TestMPIJobOfAnotherVersion(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(strings.NewReader(strings.Replace(launcherJob, "v2beta1", "v1", 1)), &stdout, &stderr, "-f", "-")
	if want := "(kubeflow.org/v1), and only MPIJob (kubeflow.org/v2beta1) is converted; write it in that version"; code != 1 ||
		!strings.Contains(stderr.String(), want) {
		t.Errorf("exit code %d, says %s", code, &stderr)
	}
}
