package convert

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// start is how a container starts.
type start struct {
	// torchrun is whether it starts torchrun, as far as its command tells.
	torchrun bool
	// flags are the arguments of torchrun itself, by name with dashes; without "=value", the next word is the value.
	flags map[string]string
	// instead is the command that starts the same through torchrun; empty when the image or a launcher decides what starts.
	instead []string
	// launcher is the program that starts the script, when it is one that torchrun would take the place of.
	launcher string
	// foldsArgs is whether instead holds the container's args as well.
	foldsArgs bool
}

var (
	python     = regexp.MustCompile(`^(python|pypy)[0-9.]*$`)
	shell      = regexp.MustCompile(`^(ba|da|z|k|)sh$`)
	launchers  = []string{"accelerate", "deepspeed", "horovodrun", "mpiexec", "mpirun"}
	torchWords = []string{"torch.distributed.run", "torch.distributed.launch"}
)

// readStart reads a container's command. Without one, the image's entry point starts, which a manifest does not show.
func readStart(container *corev1.Container) start {
	if len(container.Command) == 0 {
		return start{}
	}
	words := slices.Concat(container.Command, container.Args)
	program := path.Base(words[0])
	switch {
	case program == "torchrun":
		return start{torchrun: true, flags: torchrunFlags(words[1:])}
	case shell.MatchString(program):
		return readShell(words)
	case python.MatchString(program):
		return readPython(words)
	case slices.Contains(launchers, program):
		return start{launcher: program}
	}
	return start{instead: slices.Concat([]string{"torchrun", "--no-python"}, words), foldsArgs: true}
}

// readShell looks for torchrun among the words of a script. What a script does beyond is its own.
func readShell(words []string) start {
	script := strings.Fields(strings.ReplaceAll(strings.Join(words[1:], " "), "\\\n", " "))
	for i, word := range script {
		word = strings.Trim(word, `"'(;`)
		if path.Base(word) == "torchrun" || slices.Contains(torchWords, word) {
			return start{torchrun: true, flags: torchrunFlags(script[i+1:])}
		}
	}
	return start{instead: slices.Concat([]string{"torchrun", "--no-python"}, words), foldsArgs: true}
}

// readPython skips the interpreter's options: all are single letters; -W, -X and --check-hash-based-pycs take a
// value, -m a module and -c a program.
func readPython(words []string) start {
	for i := 1; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "-m" && i+1 < len(words):
			if slices.Contains(torchWords, words[i+1]) {
				return start{torchrun: true, flags: torchrunFlags(words[i+2:])}
			}
			return start{instead: slices.Concat([]string{"torchrun", "-m"}, words[i+1:]), foldsArgs: true}
		case word == "-c":
			return start{instead: slices.Concat([]string{"torchrun", "--no-python"}, words), foldsArgs: true}
		case word == "-W" || word == "-X" || word == "--check-hash-based-pycs":
			i++
		case !strings.HasPrefix(word, "-"):
			return start{instead: slices.Concat([]string{"torchrun"}, words[i:]), foldsArgs: true}
		}
	}
	return start{instead: slices.Concat([]string{"torchrun", "--no-python"}, words), foldsArgs: true}
}

// switches are torchrun's options without a value (torch/distributed/run.py, get_args_parser, and launch.py).
var switches = []string{"standalone", "no-python", "run-path", "m", "module", "h", "help", "use-env"}

// torchrunFlags reads torchrun's own options up to the training script, dashes and underscores alike, as torchrun does.
func torchrunFlags(words []string) map[string]string {
	flags := map[string]string{}
	for i := 0; i < len(words) && strings.HasPrefix(words[i], "-"); i++ {
		name, value, hasValue := strings.Cut(strings.TrimLeft(words[i], "-"), "=")
		name = strings.ReplaceAll(name, "_", "-")
		if !hasValue && !slices.Contains(switches, name) && i+1 < len(words) {
			i++
			value = words[i]
		}
		flags[name] = value
	}
	return flags
}

// launch says what the command of the training container must change to train with what Tideline tells it.
func (c *conversion) launch() {
	containers := c.in.Spec.PyTorchReplicaSpecs[c.role()].Template.Spec.Containers
	container := &containers[slices.IndexFunc(containers, isPyTorch)]
	where := replicaPath(c.role()) + ".template.spec.containers[" + container.Name + "]"
	s := readStart(container)
	if !s.torchrun && (c.in.Spec.ElasticPolicy == nil || c.hasMaster()) {
		c.notTorchrun(where, container, s)
	}
	c.flags(where, s.flags)
	c.words(where, container)
}

func (c *conversion) notTorchrun(where string, container *corev1.Container, s start) {
	meaning := "training-operator tells each pod its RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; Tideline tells torchrun, " +
		"which tells the processes that it starts"
	if !c.hasMaster() {
		meaning = "without a Master, training-operator lets each pod train by itself unless torchrun starts it; " +
			"with Tideline too, workers find each other only through torchrun"
	}
	c.throughTorchrun(where, container, s, meaning)
}

// throughTorchrun says how to have torchrun start what a container starts, and why.
func (d *draft) throughTorchrun(where string, container *corev1.Container, s start, meaning string) {
	if s.launcher != "" {
		d.note(where+".command", container.Command, meaning,
			"let torchrun start the script in place of "+s.launcher+": command: [torchrun, SCRIPT]")
		return
	}
	if s.instead == nil {
		d.note(where+".command", nil, meaning+"; what the image starts is not known here",
			"unless it is torchrun, write command: [torchrun, SCRIPT] before the args")
		return
	}
	do := "start it through torchrun: command: " + flow(s.instead)
	if s.foldsArgs && len(container.Args) > 0 {
		do += " without args"
	}
	d.note(where+".command", container.Command, meaning, do)
}

var harmless = regexp.MustCompile(`^[A-Za-z0-9_./=+-]+$`)

// isPlainYAML is whether YAML reads a word as that word, and not as a number or the like.
func isPlainYAML(word string) bool {
	var read any
	return harmless.MatchString(word) && yaml.Unmarshal([]byte(word), &read) == nil && read == word
}

// flow writes words as a YAML list on one line.
func flow(words []string) string {
	written := make([]string, len(words))
	for i, word := range words {
		written[i] = word
		if !isPlainYAML(word) {
			written[i] = strconv.Quote(word)
		}
	}
	return "[" + strings.Join(written, ", ") + "]"
}

// decided are torchrun's options that stand against what Tideline tells by variables.
var decided = []struct{ flag, meaning string }{
	{"nnodes", "it stands against the range that Tideline tells torchrun"},
	{"rdzv-backend", "it stands against the rendezvous by c10d, whose store is on worker 0"},
	{"rdzv-endpoint", "it stands against worker 0's address, which Tideline tells torchrun"},
	{"rdzv-id", "it stands against the id that Tideline gives each attempt"},
	{"rdzv-conf", "it stands against Tideline's, which says which worker hosts the store"},
	{"standalone", "each worker would train by itself"},
	{"node-rank", "ranks follow from the rendezvous"},
	{"master-addr", "the address of the first process follows from the rendezvous"},
	{"master-port", "the port of the first process follows from the rendezvous"},
	{"local-addr", "it stands against the worker's name, which Tideline tells torchrun"},
}

// flags says which of torchrun's options on the command line beat the variables that Tideline sets.
func (d *draft) flags(where string, flags map[string]string) {
	for _, option := range decided {
		value, ok := flags[option.flag]
		if !ok || d.agrees(option.flag, value) {
			continue
		}
		d.note(where+".command --"+option.flag, cmp.Or(value, "true"), option.meaning+", and a flag beats a variable",
			"remove it from the command")
	}
	if n, ok := flags["max-restarts"]; ok && n != strconv.Itoa(torchrunRestarts) {
		d.note(where+".command --max-restarts", n, losingCosts, "remove it, or make it large enough")
	}
}

// agrees is whether a flag says what Tideline says.
func (d *draft) agrees(flag, value string) bool {
	roles := d.out.Spec.RoleMembers() // They do not join the rendezvous.
	least, most := d.out.Spec.MinReplicas-roles, d.out.Spec.MaxReplicas-roles
	switch flag {
	case "nnodes":
		return strings.Contains(value, "PET_NNODES") || value == fmt.Sprintf("%d:%d", least, most) ||
			least == most && value == strconv.Itoa(int(most))
	case "rdzv-backend":
		return value == "c10d" || strings.Contains(value, "PET_RDZV_BACKEND")
	case "rdzv-endpoint":
		return strings.Contains(value, "PET_RDZV_ENDPOINT")
	case "rdzv-id":
		return strings.Contains(value, "PET_RDZV_ID")
	}
	return false
}

var variable = regexp.MustCompile(
	`\$[({]?(RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|PET_NODE_RANK|PET_MASTER_ADDR|PET_MASTER_PORT)\b`)

// wording is what a script may say that only the controller provides which ran it so far.
type wording struct {
	// variables that are not set any more: the first group of a match is their name. Nil looks for none.
	variables *regexp.Regexp
	// absent says that they are not, by default that they are not set; instead where to find what they said, and do what to do.
	absent, instead, do string
	// hosts are names by which pods found each other. Nil looks for none.
	hosts *regexp.Regexp
	// newHosts is the end of a sentence about their names now.
	newHosts, nameWhat string
}

// words looks in command, args and values of variables for what only training-operator provides.
func (c *conversion) words(where string, container *corev1.Container) {
	w := wording{newHosts: ", and the Master is worker 0", nameWhat: "name worker 0, or leave it to torchrun"}
	if c.hasMaster() {
		w.variables = variable
		w.instead = "torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for the processes that it starts"
		w.do = "read it there, or leave it out"
	}
	if c.in.Name != "" {
		w.hosts = hostNames(c.in.Name, "master|worker")
	}
	c.wordsOf(where, container, w)
}

// hostNames finds host names NAME-ROLE-INDEX of roles that are given as a choice of a regular expression.
func hostNames(name, roles string) *regexp.Regexp {
	return regexp.MustCompile(`(^|[^-a-z0-9])` + regexp.QuoteMeta(name) + `-(` + roles + `)-[0-9]+`)
}

// wordsOf notes the words of a container that say what is not so any more.
func (d *draft) wordsOf(where string, container *corev1.Container, w wording) {
	look := func(path, word string) {
		if w.variables != nil {
			if found := w.variables.FindStringSubmatch(word); found != nil {
				d.note(path, word, found[1]+cmp.Or(w.absent, " is not set in the container: ")+w.instead, w.do)
			}
		}
		if w.hosts != nil && w.hosts.MatchString(word) {
			d.note(path, word, fmt.Sprintf("the host names are %s.%s and so on%s",
				rendezvous.WorkerName(d.out, 0), rendezvous.ServiceName(d.out.Name), w.newHosts), w.nameWhat)
		}
	}
	for i, word := range container.Command {
		look(fmt.Sprintf("%s.command[%d]", where, i), word)
	}
	for i, word := range container.Args {
		look(fmt.Sprintf("%s.args[%d]", where, i), word)
	}
	for _, e := range container.Env {
		if !slices.Contains(reserved, e.Name) && !slices.Contains(displaced, e.Name) {
			look(where+".env["+e.Name+"]", e.Value)
		}
	}
}

// startsTorchrun is whether torchrun is known to start the training.
func (c *conversion) startsTorchrun() bool {
	elastic := c.in.Spec.ElasticPolicy != nil
	return readStart(c.trainer()).torchrun || elastic && len(c.trainer().Command) == 0
}

// seconds reads a timeout as torchrun does, as a whole number.
func seconds(s string) *int32 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return nil
	}
	return ptr.To(int32(n))
}
