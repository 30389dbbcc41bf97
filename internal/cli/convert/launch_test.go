package convert

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestProcesses(t *testing.T) {
	with := func(nproc string, gpu int64, command ...string) func(*pytorchJob) {
		return func(j *pytorchJob) {
			if nproc != "" {
				j.Spec.NprocPerNode = ptr.To(nproc)
			}
			pod(func(s *corev1.PodSpec) {
				s.Containers[0].Resources = corev1.ResourceRequirements{}
				if gpu > 0 {
					s.Containers[0].Resources = gpus(gpu)
				}
				if command != nil {
					s.Containers[0].Command = command
				}
			})(j)
		}
	}
	const path, processes = "spec.nprocPerNode", "spec.framework.nprocPerNode"
	const python = torchPath + `.command = ["python","train.py"]: training-operator tells each pod its RANK, WORLD_SIZE, ` +
		`MASTER_ADDR and MASTER_PORT; Tideline tells torchrun, which tells the processes that it starts; start it through ` +
		`torchrun: command: [torchrun, train.py]`
	start := func(n int) string {
		return fmt.Sprintf("Tideline tells torchrun to start %d in each worker; set spec.framework.nprocPerNode to the number "+
			"that you want", n)
	}
	const auto = ": auto, training-operator's default, means one process for each CPU of a node without GPUs; "
	const each = ": training-operator counts one process for each pod, so torchrun starts 1 in each worker of 4 GPUs; set " +
		"spec.framework.nprocPerNode to 4 if each process shall have one GPU"
	check(t, map[string]rule{
		"a number": {with("4", 0), map[string]string{processes: "4"}, nil},
		"the most": {with("256", 0), map[string]string{processes: "256"}, nil},
		"too many": {with("257", 0), map[string]string{processes: "null"}, []string{path + " = 257: the number may be 1 " +
			"to 256; it is left out, and " + start(1)}},
		"none": {with("0", 2), map[string]string{processes: "null"}, []string{path + " = 0: the number may be 1 to " +
			"256; it is left out, and " + start(2)}},
		"the elastic policy's": {func(j *pytorchJob) { elastic(j).NProcPerNode = ptr.To[int32](2) },
			map[string]string{processes: "2"}, nil},
		"the elastic policy's, too many": {func(j *pytorchJob) { elastic(j).NProcPerNode = ptr.To[int32](257) },
			map[string]string{processes: "null"},
			[]string{"spec.elasticPolicy.nProcPerNode = 257: the number may be 1 to 256; it is left out, and " + start(1)}},
		"auto with GPUs":     {with("auto", 4), map[string]string{processes: "null"}, nil},
		"auto without GPUs":  {with("auto", 0), map[string]string{processes: "null"}, []string{path + " = auto" + auto + start(1)}},
		"unset without GPUs": {with("", 0), map[string]string{processes: "null"}, []string{path + " is not set" + auto + start(1)}},
		"unset, elastic, by the image": {func(j *pytorchJob) {
			elastic(j)
			trainerOf(j).Command = nil
			trainerOf(j).Resources = corev1.ResourceRequirements{}
		}, nil,
			[]string{path + " is not set" + auto + start(1)}},
		"unset, by a script": {with("", 0, "python", "train.py"), map[string]string{processes: "null"}, []string{python}},
		"unset, by a script on GPUs": {with("", 4, "python", "train.py"), map[string]string{processes: "1"},
			[]string{path + " is not set" + each, python}},
		"auto, by a script on GPUs": {with("auto", 4, "python", "train.py"), map[string]string{processes: "1"},
			[]string{path + " = auto" + each, python}},
		"two, by a script": {with("2", 4, "python", "train.py"), map[string]string{processes: "2"},
			[]string{path + " = 2: torchrun starts so many processes in each worker; let the script start none of its own", python}},
		"cpu": {with("cpu", 2), map[string]string{processes: "null"}, []string{path + " = cpu: it means one process " +
			"for each CPU of the node, however many the container may use; " + start(2)}},
		"gpu": {with("gpu", 2), map[string]string{processes: "null"}, nil},
		"gpu without GPUs": {with("gpu", 0), map[string]string{processes: "null"}, []string{path + " = gpu: the container asks for " +
			"no GPUs that Tideline could count; " + start(1)}},
		"a word": {with("many", 2), map[string]string{processes: "null"}, []string{path + " = many: torchrun does not " +
			"know it; it is left out, and " + start(2)}},
	})
}

func TestLaunch(t *testing.T) {
	const told = "training-operator tells each pod its RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; Tideline tells " +
		"torchrun, which tells the processes that it starts; "
	with := func(command []string, args ...string) func(*pytorchJob) {
		return pod(func(s *corev1.PodSpec) { s.Containers[0].Command, s.Containers[0].Args = command, args })
	}
	torch := func(words ...string) func(*pytorchJob) { return with(append([]string{"torchrun"}, words...)) }
	flag := func(name, value, meaning string) string {
		return torchPath + ".command --" + name + " = " + value + ": " + meaning + ", and a flag beats a variable; remove it " +
			"from the command"
	}
	instead := func(command, better string) []string {
		return []string{torchPath + ".command = " + command + ": " + told + "start it through torchrun: command: " + better}
	}
	unset := func(path, word, name string) string {
		return path + " = " + word + ": " + name + " is not set in the container: torchrun sets RANK, WORLD_SIZE, MASTER_ADDR " +
			"and MASTER_PORT for the processes that it starts; read it there, or leave it out"
	}
	hosts := func(path, word string) string {
		return path + " = " + word + ": the host names are ctr-worker-0.ctr-workers and so on, and the Master is worker 0; " +
			"name worker 0, or leave it to torchrun"
	}
	check(t, map[string]rule{
		"torchrun by its path": {with([]string{"/opt/conda/bin/torchrun"}, "train.py"), nil, nil},
		"as a module": {with([]string{"python3.11", "-u", "-X", "dev", "-m", "torch.distributed.run", "train.py"}),
			nil, nil},
		"by its older name":       {with([]string{"python", "-m", "torch.distributed.launch", "train.py"}), nil, nil},
		"in a shell":              {with([]string{"bash", "-c"}, "cd /work && torchrun train.py"), nil, nil},
		"as a module, in a shell": {with([]string{"/bin/sh", "-c", "python -m torch.distributed.run train.py"}), nil, nil},
		"python": {with([]string{"/usr/bin/python3", "-u", "train.py"}), nil,
			instead(`["/usr/bin/python3","-u","train.py"]`, "[torchrun, train.py]")},
		"python with args": {with([]string{"python", "-W", "ignore", "train.py"}, "--lr", "0.1 or so"), nil,
			instead(`["python","-W","ignore","train.py"]`, `[torchrun, train.py, --lr, "0.1 or so"] without args`)},
		"a module": {with([]string{"python", "-m", "ads.train", "--fast"}), nil,
			instead(`["python","-m","ads.train","--fast"]`, "[torchrun, -m, ads.train, --fast]")},
		"a line of python": {with([]string{"python", "-c", "import x"}), nil,
			instead(`["python","-c","import x"]`, `[torchrun, --no-python, python, -c, "import x"]`)},
		"words that are not strings in YAML": {with([]string{"./train", "true", "0x1f", "--", "-"}), nil,
			instead(`["./train","true","0x1f","--","-"]`, `[torchrun, --no-python, ./train, "true", "0x1f", --, "-"]`)},
		"python alone": {with([]string{"python"}), nil, instead(`["python"]`, "[torchrun, --no-python, python]")},
		"a shell without torchrun": {with([]string{"sh", "-c", "./train"}), nil,
			instead(`["sh","-c","./train"]`, "[torchrun, --no-python, sh, -c, ./train]")},
		"another program": {with([]string{"/opt/train", "-n", "1"}), nil,
			instead(`["/opt/train","-n","1"]`, `[torchrun, --no-python, /opt/train, -n, "1"]`)},
		"another launcher": {with([]string{"/usr/bin/mpirun", "-n", "1", "train"}), nil, []string{torchPath +
			`.command = ["/usr/bin/mpirun","-n","1","train"]: ` + told +
			"let torchrun start the script in place of mpirun: command: [torchrun, SCRIPT]"}},
		"the image's entry point": {with(nil, "--epochs=1"), nil,
			[]string{torchPath + ".command is not set: " + told + "what the image starts is not known here; unless it is " +
				"torchrun, write command: [torchrun, SCRIPT] before the args"}},
		"workers alone": {func(j *pytorchJob) { noMaster(j); trainerOf(j).Command = []string{"python", "train.py"} }, nil,
			[]string{torchPath + `.command = ["python","train.py"]: without a Master, training-operator lets each pod train by ` +
				`itself unless torchrun starts it; with Tideline too, workers find each other only through torchrun; start it ` +
				`through torchrun: command: [torchrun, train.py]`}},
		"elastic": {func(j *pytorchJob) { elastic(j); trainerOf(j).Command = []string{"./start"} }, nil, nil},
		"flags that agree": {torch("--nnodes=4", "--rdzv_backend=c10d", "--rdzv-id=$(PET_RDZV_ID)", "--rdzv_endpoint",
			"$(PET_RDZV_ENDPOINT)", "--nproc_per_node=1", "train.py", "--nnodes=9"), nil, nil},
		"a range that agrees":   {torch("--nnodes", "4:4", "train.py"), nil, nil},
		"a range from torchrun": {torch("--nnodes=$PET_NNODES", "--rdzv_backend=$PET_RDZV_BACKEND", "train.py"), nil, nil},
		"flags that do not": {torch("--nnodes=2", "--rdzv_backend", "etcd", "--rdzv-endpoint=e:1", "--rdzv_id=7",
			"--rdzv_conf=a=b", "--node_rank=0", "--master_addr=m", "--master-port", "1", "--local_addr=l", "-m", "ads.train",
			"--standalone"), nil, []string{
			flag("nnodes", "2", "it stands against the range that Tideline tells torchrun"),
			flag("rdzv-backend", "etcd", "it stands against the rendezvous by c10d, whose store is on worker 0"),
			flag("rdzv-endpoint", "e:1", "it stands against worker 0's address, which Tideline tells torchrun"),
			flag("rdzv-id", "7", "it stands against the id that Tideline gives each attempt"),
			flag("rdzv-conf", "a=b", "it stands against Tideline's, which says which worker hosts the store"),
			flag("node-rank", "0", "ranks follow from the rendezvous"),
			flag("master-addr", "m", "the address of the first process follows from the rendezvous"),
			flag("master-port", "1", "the port of the first process follows from the rendezvous"),
			flag("local-addr", "l", "it stands against the worker's name, which Tideline tells torchrun"),
		}},
		"standalone": {torch("--standalone", "train.py"), nil, []string{flag("standalone", "true", "each worker would train by "+
			"itself")}},
		"flags in a shell": {with([]string{"sh", "-c", "exec torchrun --nnodes=8 \\\n train.py"}), nil,
			[]string{flag("nnodes", "8", "it stands against the range that Tideline tells torchrun")}},
		"few restarts": {torch("--max_restarts=3", "train.py"), nil,
			[]string{torchPath + ".command --max-restarts = 3: each loss of a worker costs every other worker one of torchrun's " +
				"restarts, and with too few of them a job that gives workers away stops; remove it, or make it large enough"}},
		"variables of training-operator": {with([]string{"torchrun", "train.py"}, "--rank=$(RANK)", "--ranks=$RANKS"), nil,
			[]string{unset(torchPath+".args[0]", "--rank=$(RANK)", "RANK")}},
		"variables in variables": {pod(func(s *corev1.PodSpec) {
			s.Containers[0].Env = []corev1.EnvVar{{Name: "URL", Value: "tcp://$(MASTER_ADDR):1"}}
		}), nil, []string{unset(torchPath+".env[URL]", "tcp://$(MASTER_ADDR):1", "MASTER_ADDR")}},
		"variables in the command": {torch("train.py", "${WORLD_SIZE}"), nil,
			[]string{unset(torchPath+".command[2]", "${WORLD_SIZE}", "WORLD_SIZE")}},
		"variables that nobody set": {func(j *pytorchJob) { elastic(j); trainerOf(j).Args = []string{"$(RANK)"} }, nil, nil},
		"host names": {torch("train.py", "ctr-master-0:23456"), nil,
			[]string{hosts(torchPath+".command[2]", "ctr-master-0:23456")}},
		"host names of another job": {torch("train.py", "other-ctr-master-0"), nil, nil},
		"host names of workers": {with([]string{"torchrun", "train.py"}, "tcp://ctr-worker-12"), nil,
			[]string{hosts(torchPath+".args[0]", "tcp://ctr-worker-12")}},
	})
}
