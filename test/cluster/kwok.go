package cluster

import "path/filepath"

// kwokAnnotation marks the nodes that KWOK simulates; a real kubelet may join
// beside them.
const kwokAnnotation, kwokValue = "kwok.x-k8s.io/node", "fake"

func (c *Cluster) startKwok() (*Process, error) {
	config, err := stages(c.parts[kwokPart.name])
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.state.path, "kwok-stages.yaml")
	if err := writeFile(path, config, 0o600); err != nil {
		return nil, err
	}
	return c.startClient(kwokPart, "kwok", "kwok",
		"--config="+path,
		"--manage-nodes-with-annotation-selector="+kwokAnnotation+"="+kwokValue,
		"--node-lease-duration-seconds=40",
		"--cidr=10.128.0.1/9",
	)
}
