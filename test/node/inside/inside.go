//go:build linux

// Package inside is what happens within the namespaces of a node: of processes, mounts, network, IPC and host name. The kernel
// ends and removes all that is in them when process 1 ends, whatever becomes of the test.
package inside

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// Config is what process 1 is told, as JSON in a file.
type Config struct {
	// Folder is for logs and for what is written to /var/lib and /var/log, which stay as they were outside.
	Folder string
	// Bridge is the network of pods, and Address that of the node in it, with the length of its prefix.
	Bridge, Address string
	// MAC is the bridge's: one that follows the pods' changes with them, and neighbours keep the old one.
	MAC string
	// APIServer is the address of the API server outside, which is served inside at the same one, and at those of Serve.
	APIServer string
	Serve     []string
	// Socket is where the test listens for connections to the API server.
	Socket string
	// Outside is a socket by which Inside, an address of the node, is served to the test.
	Outside, Inside string
	// Programs are started in this order.
	Programs []Program
}

// Program is one that runs until the node ends, or is killed by an [Order].
type Program struct {
	Name string
	Args []string
	// Later is one that only an [Order] starts.
	Later bool
}

// Run makes a node of the namespaces that the process was started in, does what it is ordered, and returns when the orders end.
// The error says which program ended before on its own.
func Run(file string, orders io.Reader, answers io.Writer) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	c := &Config{}
	if err := json.Unmarshal(content, c); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	ctx := context.Background() // it lives as long as the process
	for _, prepare := range []func(context.Context) error{c.mount, c.connect, c.relay} {
		if err := prepare(ctx); err != nil {
			return err
		}
	}
	s := &supervisor{config: c, running: map[string]*program{}, ended: make(chan error)}
	for _, p := range c.Programs {
		if p.Later {
			continue
		}
		if err := s.start(ctx, p); err != nil {
			return err
		}
	}
	go func() { s.ended <- s.obey(ctx, orders, answers) }()
	return <-s.ended
}

// mount keeps from the host what is mounted and written here.
func (c *Config) mount(context.Context) error {
	const ours = ""
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		options              string
	}{
		{ours, "/", "", syscall.MS_REC | syscall.MS_PRIVATE, ""},
		{ours, "/", "", syscall.MS_REC | syscall.MS_SHARED, ""}, // among the containers
		{"proc", "/proc", "proc", 0, ""},
		{"tmpfs", "/run", "tmpfs", 0, "mode=755"},
		{"overlay", "/var/lib", "overlay", 0, c.layers("lib")},
		{"overlay", "/var/log", "overlay", 0, c.layers("log")},
	} {
		if m.kind == "overlay" {
			for _, folder := range []string{"upper", "work"} {
				if err := os.MkdirAll(filepath.Join(c.Folder, "var", filepath.Base(m.target), folder), 0o755); err != nil {
					return err
				}
			}
		}
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, m.options); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.target, err)
		}
	}
	return c.coverSettings()
}

// settings of the kernel are in no namespace. The kubelet changes those that are not what it wants, which is this.
var settings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// coverSettings has the kubelet find the settings that it wants, in files: those of the machine stay as they are.
func (c *Config) coverSettings() error {
	for name, value := range settings {
		file := filepath.Join(c.Folder, "settings", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			return err
		}
		if err := syscall.Mount(file, "/proc/sys/"+name, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s on /proc/sys/%s: %w", file, name, err)
		}
	}
	return nil
}

// layers are the options of an overlay over /var/NAME.
func (c *Config) layers(name string) string {
	own := filepath.Join(c.Folder, "var", name)
	return fmt.Sprintf("lowerdir=/var/%s,upperdir=%s,workdir=%s", name, filepath.Join(own, "upper"), filepath.Join(own, "work"))
}

// connect makes the network of the node, which ends at the node.
func (c *Config) connect(ctx context.Context) error {
	commands := [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", c.Bridge, "address", c.MAC, "type", "bridge"},
		{"address", "add", c.Address, "dev", c.Bridge},
		{"link", "set", c.Bridge, "up"},
		{"route", "add", "default", "dev", c.Bridge}, // kubelet wants one
	}
	for _, address := range c.Serve {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		commands = append(commands, []string{"address", "add", host + "/32", "dev", c.Bridge})
	}
	for _, args := range commands {
		if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600)
}

// relay serves the API server inside, and what is wanted of the node outside.
func (c *Config) relay(ctx context.Context) error {
	for _, address := range append(slices.Clone(c.Serve), c.APIServer) {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		go func() { _ = Relay(ctx, listener, "unix", c.Socket) }()
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", c.Outside)
	if err != nil {
		return err
	}
	go func() { _ = Relay(ctx, listener, "tcp", c.Inside) }()
	return nil
}
