package convert

import "regexp"

// launch says what the command must change to train with what Tideline tells it.
func (c *volcanoJob) launch() {
	container := trainingContainer(&c.rest.Template.Spec)
	where := c.restPath + ".template.spec.containers[" + container.Name + "]"
	names := ""
	for _, t := range c.tasks() {
		if names != "" {
			names += "|"
		}
		names += regexp.QuoteMeta(t.Name)
	}
	w := wording{nameWhat: "name worker 0, or read /etc/volcano/hosts"}
	if c.in.Name != "" {
		w.hosts = hostNames(c.in.Name, names)
	}
	c.roleWords(w)
	if !c.usesTorchrun() {
		c.wordsOf(where, container, w)
		return
	}
	s := readStart(container)
	if !s.torchrun {
		c.throughTorchrun(where, container, s, "Volcano tells each pod its RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; Tideline "+
			"tells torchrun, which tells the processes that it starts")
	}
	c.flags(where, s.flags)
	w.variables, w.nameWhat = torchOrVolcano, "name worker 0, or leave it to torchrun"
	w.instead = "torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for the processes that it starts, and Volcano's " +
		"variables are those of framework.type Custom"
	w.do = "read it there, or leave it out"
	c.wordsOf(where, container, w)
}

// roleWords says what the containers of roles must change.
func (c *volcanoJob) roleWords(w wording) {
	if c.usesTorchrun() {
		w.variables = torchOrVolcano
		w.instead, w.do = "a role beside torchrun is told nothing", "write it in the env of the role"
	}
	for _, r := range c.roles {
		theirs := trainingContainer(&r.Template.Spec)
		c.wordsOf(taskPath(r.TaskSpec)+".template.spec.containers["+theirs.Name+"]", theirs, w)
	}
}

// torchOrVolcano are variables that no container has where torchrun is told how workers meet.
var torchOrVolcano = regexp.MustCompile(
	`\$[({]?(RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|V[CK]_[A-Z0-9_]+)\b`)
