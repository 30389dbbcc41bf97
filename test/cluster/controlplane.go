package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// auditPolicy writes one line per request, when it was answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// withoutControllers are the controllers of kube-controller-manager that need a
// cloud, volumes or certificates, which this cluster has not. And those of Endpoints:
// EndpointSlices have taken their place, and each pod of a job is a write less.
var withoutControllers = []string{
	"*",
	"-bootstrap-signer-controller", "-token-cleaner-controller",
	"-certificatesigningrequest-approving-controller", "-certificatesigningrequest-cleaner-controller",
	"-certificatesigningrequest-signing-controller", "-node-ipam-controller", "-persistentvolume-attach-detach-controller",
	"-persistentvolume-binder-controller", "-persistentvolume-expander-controller",
	"-ttl-controller", "-endpoints-controller", "-endpointslice-mirroring-controller",
}

// A Server is a process that listens on ports given to it.
type Server struct {
	// Name is also that of its log, and Program the path of what runs.
	Name, Program string
	// Ports is how many it listens on.
	Ports int
	// Env are further variables, where arguments would show a secret.
	Env []string
	// Prepare returns the arguments for these ports. It may be called more than once.
	Prepare func(ctx context.Context, ports []int) ([]string, error)
	Ready   func(context.Context) error
}

// startServer starts s on free ports and waits until it is ready. Another
// program may take a port before s listens; s is then started on others.
func (c *Cluster) startServer(ctx context.Context, s Server) (*Process, error) {
	for attempts := 5; ; attempts-- {
		ports, err := FreePorts(s.Ports)
		if err != nil {
			return nil, err
		}
		args, err := s.Prepare(ctx, ports)
		if err != nil {
			return nil, err
		}
		p, err := StartProcess(c.state.path, s.Name, s.Program, args, s.Env...)
		if err != nil {
			return nil, err
		}
		err = c.WaitFor(ctx, s.Name+" to be ready", s.Ready, p)
		if err == nil {
			return p, nil
		}
		if attempts == 1 || !p.PortTaken() {
			p.stop(0)
			return nil, err
		}
	}
}

// startControlPlane starts etcd and the API server and waits until it answers. It
// is ready about a second later, when it has made the roles of Kubernetes.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	var err error
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	if c.keys, err = c.authority.writeKeyFiles(c.state.path); err != nil {
		return err
	}
	c.etcd, err = c.startServer(ctx, Server{
		Name: "etcd", Program: c.parts[etcdPart.name].Program("etcd"), Ports: 2, Prepare: c.etcdArguments, Ready: c.etcdReady,
	})
	if err != nil {
		return err
	}
	c.apiServer, err = c.startServer(ctx, Server{
		Name: "kube-apiserver", Program: c.parts[kubernetesPart.name].Program("kube-apiserver"), Ports: 1,
		Prepare: c.apiServerArguments, Ready: c.apiServerAnswers,
	})
	return err
}

func (c *Cluster) etcdArguments(_ context.Context, ports []int) ([]string, error) {
	c.etcdServer = "http://" + Address(ports[0])
	peer := "http://" + Address(ports[1])
	return []string{
		"--name=local",
		"--data-dir=data",
		"--listen-client-urls=" + c.etcdServer,
		"--advertise-client-urls=" + c.etcdServer,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=local=" + peer,
		"--unsafe-no-fsync",                // the data need not outlive a power cut
		"--quota-backend-bytes=8589934592", // 8 GiB, for hours of churn
		"--log-level=warn",
	}, nil
}

func (c *Cluster) etcdReady(ctx context.Context) error { return Healthy(ctx, c.etcdServer+"/health") }

// Healthy returns why a health check fails.
func Healthy(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// apiServerArguments also makes the clients and kubeconfigs for this port.
func (c *Cluster) apiServerArguments(_ context.Context, ports []int) ([]string, error) {
	c.apiPort = ports[0]
	if err := c.writeAdminKubeconfig(); err != nil {
		return nil, err
	}
	var err error
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfig(c.config); err != nil {
		return nil, err
	}
	args := []string{
		"--etcd-servers=" + c.etcdServer,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.apiPort),
		"--endpoint-reconciler-type=none", // an Endpoints object refuses loopback addresses
		"--tls-cert-file=" + c.keys.apiServerCert,
		"--tls-private-key-file=" + c.keys.apiServerKey,
		"--cert-dir=.",
		"--client-ca-file=" + c.keys.ca,
		"--kubelet-client-certificate=" + c.keys.kubeletCert,
		"--kubelet-client-key=" + c.keys.kubeletKey,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.keys.serviceAccountKey,
		"--service-account-signing-key-file=" + c.keys.serviceAccountKey,
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		"--profiling=false",
	}
	if c.options.AuditLog == "" {
		return args, nil
	}
	policy := filepath.Join(c.state.path, "audit-policy.yaml")
	if err := os.MkdirAll(filepath.Dir(c.options.AuditLog), 0o755); err != nil {
		return nil, err
	}
	return append(args,
		"--audit-policy-file="+policy,
		"--audit-log-path="+c.options.AuditLog,
		"--audit-log-maxsize=10000", // MB; a log that is rotated cannot be counted
	), writeFile(policy, []byte(auditPolicy), 0o600)
}

func (c *Cluster) apiServerAnswers(ctx context.Context) error {
	return c.client.Discovery().RESTClient().Get().AbsPath("/apis").Do(ctx).Error()
}

func (c *Cluster) apiServerReady(ctx context.Context) error {
	return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// startControllers starts kube-controller-manager and waits for its first sign
// of work. All its controllers are one user: to make a service account for each
// would take three seconds.
func (c *Cluster) startControllers(ctx context.Context) error {
	without := withoutControllers
	if c.options.NoScheduler {
		without = append(slices.Clone(without), "-node-lifecycle-controller")
	}
	p, err := c.startClient(kubernetesPart, "kube-controller-manager", "system:kube-controller-manager",
		"--secure-port=0", // nobody asks it for its health
		"--leader-elect=false",
		"--controllers="+strings.Join(without, ","),
		"--horizontal-pod-autoscaler-sync-period=1s",
		"--service-account-private-key-file="+c.keys.serviceAccountKey,
		"--root-ca-file="+c.keys.ca,
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	return c.WaitFor(ctx, "the service account that every pod of the namespace default has", func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	}, p)
}

// StopAPIServer ends the API server, by force if it has not ended within 2 s. The
// other processes keep running and keep trying.
func (c *Cluster) StopAPIServer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apiServer.stop(stopGrace)
}

// KillAPIServer ends the API server as a crash does, whatever it is about.
func (c *Cluster) KillAPIServer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apiServer.stop(0)
}

// PauseAPIServer holds the API server where it is, as a network that is cut does
// to all others, until ResumeAPIServer.
func (c *Cluster) PauseAPIServer() { c.signal(&c.apiServer, syscall.SIGSTOP) }

// ResumeAPIServer lets the API server go on after PauseAPIServer.
func (c *Cluster) ResumeAPIServer() { c.signal(&c.apiServer, syscall.SIGCONT) }

// PauseEtcd holds etcd where it is, as a network that is cut between it and the
// API server does, until ResumeEtcd.
func (c *Cluster) PauseEtcd() { c.signal(&c.etcd, syscall.SIGSTOP) }

// ResumeEtcd lets etcd go on after PauseEtcd.
func (c *Cluster) ResumeEtcd() { c.signal(&c.etcd, syscall.SIGCONT) }

func (c *Cluster) signal(p **Process, s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = (*p).cmd.Process.Signal(s) // A process that has ended is noticed elsewhere.
}

// StartAPIServer starts the API server again after one of these, on the same
// port and with the same data, and waits until it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	p, err := c.startAgain(ctx, c.apiServer, c.apiPort)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.apiServer = p
	c.mu.Unlock()
	return c.WaitFor(ctx, "kube-apiserver to be ready again", c.apiServerReady, p)
}

// startAgain starts a process that was stopped as it was started before, when its
// port is free.
func (c *Cluster) startAgain(ctx context.Context, p *Process, port int) (*Process, error) {
	portFree := func(context.Context) error {
		l, err := net.Listen("tcp", Address(port))
		if err != nil {
			return err
		}
		return l.Close()
	}
	if err := c.WaitFor(ctx, "the port of "+p.name+" to be free", portFree); err != nil {
		return nil, err
	}
	return StartProcess(c.state.path, p.name, p.cmd.Path, p.cmd.Args[1:], p.env...)
}
