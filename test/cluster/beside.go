package cluster

import "context"

// What suites start beside a cluster, by programs of a [Part] of their own. It
// ends with the cluster, whose Stop tells of what has ended before.

// Build is [Part.Build], which tells of its progress where the cluster does.
func (c *Cluster) Build(ctx context.Context, p Part) (Built, error) {
	return p.build(ctx, c.repo, c.options.Log)
}

// Dir is the state folder.
func (c *Cluster) Dir() string { return c.state.path }

// StartServer starts a server on free ports and returns when it is ready.
func (c *Cluster) StartServer(ctx context.Context, s Server) (*Process, error) {
	p, err := c.startServer(ctx, s)
	if err == nil {
		c.addClient(p)
	}
	return p, err
}

// StartProgram starts a program that listens on nothing that others must know.
func (c *Cluster) StartProgram(name, program string, args []string, env ...string) (*Process, error) {
	p, err := StartProcess(c.state.path, name, program, args, env...)
	if err == nil {
		c.addClient(p)
	}
	return p, err
}
