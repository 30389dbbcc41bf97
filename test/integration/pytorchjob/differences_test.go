package pytorchjob

// A difference is a fact about the objects of a job that is another with Tideline than with training-operator.
type difference struct {
	what string
	seen []seen
	why  string
	// detail is for what only Tideline, torchrun or Volcano reads: the page leaves it out.
	detail bool
}

// seen is what is seen of a difference in some jobs. The first of a difference is what people read of it.
type seen struct {
	theirs, ours string
	in           []string
}

// Jobs by what they have in common.
var (
	all              = []string{static, alone, nproc, flexible, neverOnce, exitCodes}
	withMaster       = []string{static, alone, nproc, neverOnce, exitCodes}
	withBoth         = []string{static, nproc, neverOnce, exitCodes}
	several          = []string{static, nproc, flexible, neverOnce, exitCodes}
	of4              = []string{static, neverOnce, exitCodes}
	simple           = []string{static, alone, flexible, neverOnce, exitCodes}
	simpleWithMaster = []string{static, alone, neverOnce, exitCodes}
)

// differences are all there are in the objects of the jobs.
var differences = []difference{
	// Variables of the training container.
	{
		what: "variable RANK",
		seen: []seen{
			{"its rank", unset, withBoth},
			{"0", unset, []string{alone}},
		},
		why: "torchrun sets it for the processes that it starts",
	},
	{
		what: "variable WORLD_SIZE",
		seen: []seen{
			{"4", unset, withBoth},
			{"1", unset, []string{alone}},
		},
		why: "As `RANK`",
	},
	{
		what: "variable MASTER_ADDR",
		seen: []seen{
			{"ctr-master-0", unset, withMaster},
		},
		why: "As `RANK`",
	},
	{
		what: "variable MASTER_PORT",
		seen: []seen{
			{"23456", unset, withMaster},
		},
		why: "As `RANK`",
	},
	{
		what: "variable PET_MASTER_ADDR",
		seen: []seen{
			{"ctr-master-0", unset, withMaster},
		},
		why: "It belongs to torchrun's static rendezvous; a gang whose size changes needs an elastic one",
	},
	{
		what:   "variable PET_MASTER_PORT",
		detail: true,
		seen: []seen{
			{"23456", unset, withMaster},
		},
		why: "As `PET_MASTER_ADDR`",
	},
	{
		what:   "variable PET_NODE_RANK",
		detail: true,
		seen: []seen{
			{"its rank", unset, withBoth},
			{"0", unset, []string{alone}},
		},
		why: "As `PET_MASTER_ADDR`; ranks follow sorted names",
	},
	{
		what:   "variable PET_NNODES",
		detail: true,
		seen: []seen{
			{"4", "4:4", of4},
			{"1", "1:1", []string{alone}},
			{"2", "2:2", []string{nproc}},
		},
		why: "The same, as a range",
	},
	{
		what: "variable PET_NPROC_PER_NODE",
		seen: []seen{
			{"auto", "1", simple},
		},
		why: "One per GPU; without GPUs, `auto` is one per CPU",
	},
	{
		what:   "variable PET_RDZV_BACKEND",
		detail: true,
		seen: []seen{
			{unset, "c10d", withMaster},
		},
		why: "Members may join and leave",
	},
	{
		what: "variable PET_RDZV_ENDPOINT",
		seen: []seen{
			{unset, "ctr-worker-0.ctr-workers.NAMESPACE.svc:29400", simpleWithMaster},
			{unset, "ctr-worker-0.ctr-workers.NAMESPACE.svc:23456", []string{nproc}},
			{"ctr-worker-0:23456", "ctr-worker-0.ctr-workers.NAMESPACE.svc:29400", []string{flexible}},
		},
		why: "Worker 0 holds the store; its new pod keeps the name",
	},
	{
		what:   "variable PET_RDZV_ID",
		detail: true,
		seen: []seen{
			{unset, "UID-ATTEMPT", all},
		},
		why: "Each attempt has its own, so that no worker joins a stale rendezvous",
	},
	{
		what:   "PET_RDZV_CONF's is_host",
		detail: true,
		seen: []seen{
			{unset, "0; on rank 0 1", several},
			{unset, "1", []string{alone}},
		},
		why: "Otherwise torchrun guesses from host names which worker hosts the store",
	},
	{
		what:   "PET_RDZV_CONF's join_timeout",
		detail: true,
		seen: []seen{
			{unset, "600", all},
		},
		why: "From `framework.torchrun`, or Tideline's default",
	},
	{
		what:   "PET_RDZV_CONF's last_call_timeout",
		detail: true,
		seen: []seen{
			{unset, "30", withMaster},
		},
		why: "As `join_timeout`; `convert` keeps values of `rdzvConf`",
	},
	{
		what:   "PET_RDZV_CONF's read_timeout",
		detail: true,
		seen: []seen{
			{unset, "300", all},
		},
		why: "As `join_timeout`",
	},
	{
		what:   "variable PET_LOCAL_ADDR",
		detail: true,
		seen: []seen{
			{unset, "POD.ctr-workers.NAMESPACE.svc", several},
			{unset, "ctr-worker-0.ctr-workers.NAMESPACE.svc", []string{alone}},
		},
		why: "Ranks follow it: worker 0 is rank 0",
	},
	{
		what: "variable PET_MAX_RESTARTS",
		seen: []seen{
			{unset, "100", []string{static, alone, nproc}},
			{unset, "0", []string{neverOnce, exitCodes}},
		},
		why: "Each lost worker costs the others one; `convert` sets 0 where `failurePolicy` must see failures",
	},
	// Pods.
	{
		what: "pods",
		seen: []seen{
			{
				"ctr-master-0, ctr-worker-0, ctr-worker-1, ctr-worker-2",
				"ctr-worker-0, ctr-worker-1, ctr-worker-2, ctr-worker-3",
				of4,
			},
			{"ctr-master-0", "ctr-worker-0", []string{alone}},
			{"ctr-master-0, ctr-worker-0", "ctr-worker-0, ctr-worker-1", []string{nproc}},
		},
		why: "Worker 0 takes the Master's place",
	},
	{
		what: "containers",
		seen: []seen{
			{"pytorch", "trainer", simple},
			{"pytorch, logs", "trainer, logs", []string{nproc}},
		},
		why: "Its name in an ElasticTrainingJob",
	},
	{
		what:   "variables of the container logs",
		detail: true,
		seen: []seen{
			{
				"MASTER_ADDR, MASTER_PORT, PET_MASTER_ADDR, PET_MASTER_PORT, PET_NNODES, PET_NODE_RANK, " +
					"PET_NPROC_PER_NODE, PYTHONUNBUFFERED, RANK, WORLD_SIZE",
				unset,
				[]string{nproc},
			},
		},
		why: "Only the training container starts torchrun",
	},
	{
		what:   "port pytorchjob-port",
		detail: true,
		seen: []seen{
			{"23456", unset, all},
		},
		why: "`spec.framework.port` takes its place",
	},
	{
		what:   "initContainers",
		detail: true,
		seen: []seen{
			{"init-pytorch; on rank 0 not set", unset, withBoth},
		},
		why: "torchrun's rendezvous waits for worker 0",
	},
	{
		what: "pod's restartPolicy",
		seen: []seen{
			{"Never", "OnFailure", []string{neverOnce, exitCodes}},
		},
		why: "Containers restart in place",
	},
	{
		what:   "pod's hostname",
		detail: true,
		seen: []seen{
			{unset, "POD", several},
			{unset, "ctr-worker-0", []string{alone}},
		},
		why: "Part of the worker's DNS name",
	},
	{
		what:   "pod's subdomain",
		detail: true,
		seen: []seen{
			{unset, "ctr-workers", all},
		},
		why: "The Service; part of the worker's DNS name",
	},
	{
		what: "pod's shareProcessNamespace",
		seen: []seen{
			{unset, "true", all},
		},
		why: "As PID 1, torchrun ignores SIGTERM while it is in rendezvous",
	},
	{
		what:   "container's terminationMessagePolicy",
		detail: true,
		seen: []seen{
			{"File", "FallbackToLogsOnError", all},
		},
		why: "The last line tells failures apart",
	},
	{
		what: "pod's priorityClassName",
		seen: []seen{
			{unset, "tideline-exploratory", withMaster},
			{
				unset,
				"0: tideline-exploratory, 1: tideline-exploratory, 2: tideline-exploratory-surplus, 3: " +
					"tideline-exploratory-surplus",
				[]string{flexible},
			},
		},
		why: "The tier decides which gang comes first",
	},
	{
		what:   "pod's priority",
		detail: true,
		seen: []seen{
			{"0", "1000", withMaster},
			{"0", "0: 1000, 1: 1000, 2: -300, 3: -300", []string{flexible}},
		},
		why: "The priority of the class",
	},
	{
		what:   "pod's preemptionPolicy",
		detail: true,
		seen: []seen{
			{"PreemptLowerPriority", "0: PreemptLowerPriority, 1: PreemptLowerPriority, 2: Never, 3: Never", []string{flexible}},
		},
		why: "Surplus never preempts",
	},
	{
		what: "label training.kubeflow.org/job-name",
		seen: []seen{
			{"ctr", unset, all},
		},
		why: "`tideline.io/job` says the same",
	},
	{
		what: "label training.kubeflow.org/job-role",
		seen: []seen{
			{"not set; on rank 0 master", unset, several},
			{"master", unset, []string{alone}},
		},
		why: "Rank 0 is the pod with `tideline.io/worker-index: 0`",
	},
	{
		what:   "label training.kubeflow.org/operator-name",
		detail: true,
		seen: []seen{
			{"pytorchjob-controller", unset, all},
		},
		why: "Every pod with `tideline.io/job` is Tideline's",
	},
	{
		what: "label training.kubeflow.org/replica-index",
		seen: []seen{
			{"0: 0, 1: 0, 2: 1, 3: 2", unset, of4},
			{"0", unset, []string{alone, nproc}},
			{"its rank", unset, []string{flexible}},
		},
		why: "`tideline.io/worker-index` counts the Master as 0",
	},
	{
		what: "label training.kubeflow.org/replica-type",
		seen: []seen{
			{"worker; on rank 0 master", unset, withBoth},
			{"master", unset, []string{alone}},
			{"worker", unset, []string{flexible}},
		},
		why: "As `job-role`",
	},
	{
		what: "label tideline.io/job",
		seen: []seen{
			{unset, "ctr", all},
		},
		why: "The job's name",
	},
	{
		what: "label tideline.io/worker-index",
		seen: []seen{
			{unset, "its rank", several},
			{unset, "0", []string{alone}},
		},
		why: "The worker's index",
	},
	{
		what: "label tideline.io/part",
		seen: []seen{
			{unset, "core", withMaster},
			{unset, "0: core, 1: core, 2: surplus, 3: surplus", []string{flexible}},
		},
		why: "Core or surplus",
	},
	{
		what:   "label tideline.io/task",
		detail: true,
		seen: []seen{
			{unset, "ctr", all},
		},
		why: "`spec.task`, or the job's name; usage is collected by it",
	},
	{
		what:   "label tideline.io/attempt",
		detail: true,
		seen: []seen{
			{unset, "ATTEMPT", all},
		},
		why: "The attempt that the worker belongs to",
	},
	// Services.
	{
		what: "Services",
		seen: []seen{
			{"ctr-master-0, ctr-worker-0, ctr-worker-1, ctr-worker-2", "ctr-workers", of4},
			{"ctr-master-0", "ctr-workers", []string{alone}},
			{"ctr-master-0, ctr-worker-0", "ctr-workers", []string{nproc}},
			{"ctr-worker-0, ctr-worker-1, ctr-worker-2, ctr-worker-3", "ctr-workers", []string{flexible}},
		},
		why: "One headless Service names all workers",
	},
	{
		what:   "pods of a Service",
		detail: true,
		seen: []seen{
			{"the one of its name", "all", all},
		},
		why: "As Services",
	},
	{
		what: "Service's port",
		seen: []seen{
			{"pytorchjob-port 23456", "rendezvous 29400", simple},
			{"pytorchjob-port 23456", "rendezvous 23456", []string{nproc}},
		},
		why: "The PyTorchJob's port, if it sets one",
	},
	{
		what:   "Service's publishNotReadyAddresses",
		detail: true,
		seen: []seen{
			{"false", "true", all},
		},
		why: "Workers must find worker 0 before it is ready",
	},
	// Volcano.
	{
		what: "PodGroups",
		seen: []seen{
			{"ctr of 0, 1, 2, 3", "ctr of 0, 1, ctr-surplus of 2, 3", []string{flexible}},
		},
		why: "Surplus is placed one by one",
	},
	{
		what: "PodGroup's minMember",
		seen: []seen{
			{"4", "2", []string{flexible}},
		},
		why: "`minReplicas` are placed together",
	},
	{
		what:   "PodGroup's minResources.nvidia.com/gpu",
		detail: true,
		seen: []seen{
			{"4", "2", []string{flexible}},
		},
		why: "As `minMember`",
	},
	{
		what:   "PodGroup's priorityClassName",
		detail: true,
		seen: []seen{
			{unset, "tideline-exploratory", all},
		},
		why: "As of the pods",
	},
	{
		what:   "annotation scheduling.k8s.io/group-name",
		detail: true,
		seen: []seen{
			{"ctr", "0: ctr, 1: ctr, 2: ctr-surplus, 3: ctr-surplus", []string{flexible}},
		},
		why: "The PodGroup of the pod",
	},
	{
		what:   "annotation volcano.sh/task-spec",
		detail: true,
		seen: []seen{
			{"worker", "worker; on rank 0 master", []string{flexible}},
		},
		why: "Rank 0 is master, also without a Master",
	},
	{
		what:   "annotation volcano.sh/preemptable",
		detail: true,
		seen: []seen{
			{unset, "false", withMaster},
			{unset, "0: false, 1: false, 2: true, 3: true", []string{flexible}},
		},
		why: "Surplus may be evicted, the core may not",
	},
	{
		what:   "annotation volcano.sh/task-priority",
		detail: true,
		seen: []seen{
			{unset, "0: 65536, 1: 65535, 2: 65534, 3: 65533", []string{static, flexible, neverOnce, exitCodes}},
			{unset, "65536", []string{alone}},
			{unset, "65535; on rank 0 65536", []string{nproc}},
		},
		why: "Lower indices are placed first and evicted last",
	},
}
