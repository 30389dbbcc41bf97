//go:build linux

package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/node/inside"
)

// Name is the node's, by which the API server finds the kubelet: outside of the node's namespaces, where it is relayed.
const Name = "localhost"

// prefix is how the names of cgroups of nodes begin.
const prefix = "tideline-node-"

// Options say what node to start.
type Options struct {
	// Images are there for its pods.
	Images []Image
	// Log receives the progress of the start.
	Log io.Writer
	// Logs is the folder in which Stop leaves the logs of kubelet, containerd and CoreDNS, named for the node. They are removed if
	// it is empty.
	Logs string
}

// Node is one on which pods run, until Stop is called or the program ends. A machine has one at a time.
type Node struct {
	folder, cgroup string
	logs           string // as Options have it
	lock           *os.File
	relays         []net.Listener
	first          *exec.Cmd
	orders         io.WriteCloser // of process 1, which lives until it is closed
	answers        *json.Decoder
	ended          chan struct{} // closed when process 1 has ended
	stop           sync.Once
}

// Cache is the folder for what nodes need, which is made where it is missing.
func Cache() (string, error) {
	cache, err := cluster.CacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "node")
	return cache, os.MkdirAll(cache, 0o700)
}

// Prepare makes all that a cluster with a node needs and that is not in the cache yet: in about 40 minutes on two cores. The
// error says what the machine lacks.
func Prepare(ctx context.Context, log io.Writer) error {
	if err := Missing(); err != nil {
		return err
	}
	if err := cluster.Build(ctx, log); err != nil {
		return err
	}
	if _, _, err := cluster.BuildNode(ctx, log); err != nil {
		return err
	}
	_, err := Base(ctx, log)
	return err
}

// Start starts a node of a cluster, which it joins some seconds later. It removes what a former one left that did not end as it
// should, and waits for one that runs.
func Start(ctx context.Context, config *rest.Config, kubeconfig string, o Options) (_ *Node, err error) {
	if err := Missing(); err != nil {
		return nil, err
	}
	cache, err := Cache()
	if err != nil {
		return nil, err
	}
	kubeletProgram, coredns, err := cluster.BuildNode(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	n := &Node{
		folder: filepath.Join(cache, "run"), cgroup: prefix + Name, logs: o.Logs, ended: make(chan struct{}),
	}
	if n.lock, err = lock(ctx, filepath.Join(cache, "lock"), "the node of another program to end", o.Log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = n.end()
		}
	}()
	// A later step needs what an earlier one removed.
	err = errors.Join(removeCgroups(prefix), os.RemoveAll(n.folder), os.MkdirAll(n.folder, 0o700), makeCgroup(n.cgroup))
	if err != nil {
		return nil, err
	}
	lives := context.WithoutCancel(ctx)
	apiServer := strings.TrimPrefix(config.Host, "https://")
	if _, err := n.relay(lives, "unix", n.socket("apiserver"), "tcp", apiServer); err != nil {
		return nil, err
	}
	address, err := n.relay(lives, "tcp", "127.0.0.1:0", "unix", n.socket(kubelet))
	if err != nil {
		return nil, err
	}
	built := programs{kubelet: kubeletProgram, coredns: coredns, kubeletPort: address.(*net.TCPAddr).Port}
	file, err := n.configure(built, apiServer, kubeconfig, config.CAData)
	if err != nil {
		return nil, err
	}
	if err := n.start(lives, file); err != nil {
		return nil, err
	}
	// A kubelet that finds no containerd ends.
	if err := n.awaitContainerd(ctx); err != nil {
		return nil, err
	}
	if err := n.StartKubelet(); err != nil {
		return nil, err
	}
	pause, err := n.pause(ctx)
	if err != nil {
		return nil, err
	}
	return n, n.importImages(ctx, append([]Image{pause}, o.Images...), o.Log)
}

// lock makes sure that one program at a time does what a file stands for, until the file is closed; the log says what it awaits.
func lock(ctx context.Context, file, awaited string, log io.Writer) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return f, nil
		}
		if !told {
			_, _ = fmt.Fprintln(log, "waiting for", awaited)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(time.Second):
		}
	}
}

// socket is where one of the node's programs listens, or the relay to what is outside of its namespaces.
func (n *Node) socket(of string) string { return filepath.Join(n.folder, of+".sock") }

// relay passes connections on, in or out of the node's namespaces, until the node ends, and returns the address on which it
// listens.
func (n *Node) relay(ctx context.Context, network, from, toNetwork, to string) (net.Addr, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, from)
	if err != nil {
		return nil, err
	}
	n.relays = append(n.relays, listener)
	go func() { _ = inside.Relay(ctx, listener, toNetwork, to) }()
	return listener.Addr(), nil
}

// start starts process 1 in namespaces of its own; with ctx, it ends.
func (n *Node) start(ctx context.Context, config string) error {
	program := filepath.Join(n.folder, "nodeinit")
	if err := build(ctx, program, "nodeinit"); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(n.folder, "nodeinit.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	n.first = exec.CommandContext(ctx, program, config)
	n.first.Stderr = log
	n.first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	if n.orders, err = n.first.StdinPipe(); err != nil {
		return err
	}
	answers, err := n.first.StdoutPipe()
	if err != nil {
		return err
	}
	n.answers = json.NewDecoder(answers)
	if err := n.first.Start(); err != nil {
		return err
	}
	go func() {
		_ = n.first.Wait()
		close(n.ended)
	}()
	return nil
}

// build builds one of the commands of this package, for use anywhere.
func build(ctx context.Context, to, command string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", to,
		"github.com/tideline-io/tideline/test/node/cmd/"+command)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", command, err, out)
	}
	return nil
}

// pause is the image that holds the namespaces of pods.
func (n *Node) pause(ctx context.Context) (Image, error) {
	program := filepath.Join(n.folder, "pause")
	if err := build(ctx, program, "pause"); err != nil {
		return Image{}, err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return Image{}, err
	}
	layer, err := newLayer(n.folder, fileOf{"pause", 0o755, content})
	return Image{Name: pauseImage, Layers: []Layer{layer}, Entrypoint: []string{"/pause"}}, err
}

// awaitContainerd waits until containerd listens.
func (n *Node) awaitContainerd(ctx context.Context) error {
	for {
		if c, err := (&net.Dialer{}).DialContext(ctx, "unix", n.socket(containerd)); err == nil {
			return c.Close()
		}
		select {
		case <-n.ended:
			return fmt.Errorf("the node ended: the logs are in %s", n.folder)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// importImages gives containerd images.
func (n *Node) importImages(ctx context.Context, images []Image, log io.Writer) error {
	began := time.Now()
	_, _ = fmt.Fprintf(log, "importing %d images ... ", len(images))
	read, write := io.Pipe()
	go func() { _ = write.CloseWithError(writeArchive(write, images)) }()
	cmd := exec.CommandContext(ctx, "ctr", "--address="+n.socket(containerd), "--namespace=k8s.io", "images", "import", "-")
	cmd.Stdin = read
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("importing images: %w\n%s", err, out)
	}
	_, _ = fmt.Fprintf(log, "done in %s\n", time.Since(began).Round(time.Second))
	return nil
}

// Stop ends the node, with all of its processes, and removes what it wrote but for the logs that [Options] want, unless it ended
// before: then it leaves all of its logs, and the error says where.
func (n *Node) Stop() error {
	var err error
	n.stop.Do(func() {
		select {
		case <-n.ended:
			err = errors.Join(fmt.Errorf("the node ended on its own: its logs are in %s", n.folder), n.end(n.keepLogs))
		default:
			err = n.end(n.keepLogs, func() error { return os.RemoveAll(n.folder) })
		}
	})
	return err
}

// end ends all processes, and does what is given before another node may start.
func (n *Node) end(before ...func() error) error {
	if n.first != nil && n.first.Process != nil {
		_ = n.first.Process.Kill()
		<-n.ended
	}
	for _, relay := range n.relays {
		_ = relay.Close()
	}
	var errs []error
	for _, do := range before {
		errs = append(errs, do())
	}
	return errors.Join(append(errs, removeCgroups(prefix), n.lock.Close())...)
}

// keepLogs copies the logs of the node's programs to where they are wanted.
func (n *Node) keepLogs() error {
	if n.logs == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(n.folder, "*.log"))
	errs := []error{err}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(n.logs, "node-"+filepath.Base(file)), content, 0o600)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// KillKubelet ends the kubelet as a crash does, without a successor: its containers run on, and the rest of the node does.
func (n *Node) KillKubelet() error { return n.order(inside.Order{Kill: kubelet}) }

// StartKubelet starts the kubelet that KillKubelet ended.
func (n *Node) StartKubelet() error { return n.order(inside.Order{Start: kubelet}) }

// order has process 1 obey an order; one is given at a time.
func (n *Node) order(o inside.Order) error {
	if err := json.NewEncoder(n.orders).Encode(o); err != nil {
		return fmt.Errorf("ordering %+v: %w", o, err)
	}
	answer := ""
	if err := n.answers.Decode(&answer); err != nil {
		return fmt.Errorf("ordering %+v: %w", o, err)
	}
	if answer != "" {
		return fmt.Errorf("ordering %+v: %s", o, answer)
	}
	return nil
}

// Logs is what a container of a pod has printed in the lives whose logs the kubelet keeps, in their order: the last two, and none
// once the pod is gone.
func (n *Node) Logs(pod *corev1.Pod, container string) ([]string, error) {
	folder := filepath.Join(n.folder, "pods", fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID), container)
	files, err := logsOf(folder)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the kubelet has removed it meanwhile
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(content)) {
			// Time, stream, whether it is whole, and what was printed.
			if fields := strings.SplitN(strings.TrimSpace(line), " ", 4); len(fields) == 4 {
				lines = append(lines, fields[3])
			}
		}
	}
	return lines, nil
}

// logsOf are the logs of a container's lives in their order, which are named N.log.
func logsOf(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.log"))
	life := func(file string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(filepath.Base(file), ".log"))
		return n
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(life(a), life(b)) })
	return files, err
}

// Kill ends all processes of a container whose command line has some words, as the kernel does when memory is short.
func (n *Node) Kill(containerID, words string) error {
	return n.Signal(containerID, words, syscall.SIGKILL)
}

// Signal sends a signal to all processes of a container whose command line has some words.
func (*Node) Signal(containerID, words string, signal syscall.Signal) error {
	_, id, _ := strings.Cut(containerID, "://")
	processes, err := processesOf(id)
	if err != nil {
		return err
	}
	sent := false
	for _, p := range processes {
		line, err := os.ReadFile("/proc/" + p + "/cmdline")
		if err != nil || !strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), words) {
			continue
		}
		pid, err := strconv.Atoi(p)
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, signal); err != nil {
			return err
		}
		sent = true
	}
	if !sent {
		return fmt.Errorf("container %s has no process with %q", id, words)
	}
	return nil
}
