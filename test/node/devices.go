//go:build linux

package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Devices is a device plugin: it offers the kubelet devices that are not there, until the node ends.
type Devices struct {
	pluginapi.UnimplementedDevicePluginServer

	resource corev1.ResourceName
	folder   string // where the kubelet looks for sockets, as seen from outside of the node
	log      io.Writer
	fault    atomic.Pointer[string]

	mu      sync.Mutex
	count   int
	resized chan struct{} // closed when the count changes
}

// Offer starts a device plugin for so many devices. Its errors are in the log.
func (n *Node) Offer(resource corev1.ResourceName, count int, log io.Writer) *Devices {
	d := &Devices{
		resource: resource, count: count, log: log, resized: make(chan struct{}),
		folder: fmt.Sprintf("/proc/%d/root%s", n.first.Process.Pid, pluginapi.DevicePluginPath),
	}
	go d.serve(n.ended)
	return d
}

// Resize changes how many devices there are. Pods that have one of those that go keep it.
func (d *Devices) Resize(count int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count = count
	close(d.resized)
	d.resized = make(chan struct{})
}

// size is how many devices there are, and a channel that is closed when they change.
func (d *Devices) size() (int, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count, d.resized
}

// Fail has the plugin fail all that asks for a device from now on, and say why: the kubelet rejects the pod. Pods that have
// their devices keep them.
func (d *Devices) Fail(why string) { d.fault.Store(&why) }

// Heal ends what Fail began.
func (d *Devices) Heal() { d.fault.Store(nil) }

// serve registers with each kubelet that starts: it removes the sockets of all plugins when it does.
func (d *Devices) serve(ended <-chan struct{}) {
	server := grpc.NewServer()
	for {
		if exists(d.kubelet()) && !exists(d.socket()) {
			server.Stop()
			server = grpc.NewServer()
			if err := d.register(server); err != nil {
				_, _ = fmt.Fprintf(d.log, "the device plugin of %s is not registered yet: %v\n", d.resource, err)
				_ = os.Remove(d.socket())
			}
		}
		select {
		case <-ended:
			server.Stop()
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// kubelet is the socket of the kubelet, and socket is the plugin's.
func (d *Devices) kubelet() string {
	return filepath.Join(d.folder, filepath.Base(pluginapi.KubeletSocket))
}

func (d *Devices) socket() string {
	return filepath.Join(d.folder, strings.ReplaceAll(string(d.resource), "/", "-")+".sock")
}

// register listens, and tells the kubelet where.
func (d *Devices) register(server *grpc.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", d.socket())
	if err != nil {
		return err
	}
	pluginapi.RegisterDevicePluginServer(server, d)
	go func() { _ = server.Serve(listener) }()
	kubelet, err := grpc.NewClient("unix://"+d.kubelet(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = kubelet.Close() }()
	_, err = pluginapi.NewRegistrationClient(kubelet).Register(ctx, &pluginapi.RegisterRequest{
		Version: pluginapi.Version, Endpoint: filepath.Base(d.socket()), ResourceName: string(d.resource),
	})
	return err
}

// GetDevicePluginOptions says that the kubelet need ask for nothing but devices.
func (*Devices) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

// ListAndWatch lists the devices each time that they change, all of them healthy whatever befalls the plugin.
func (d *Devices) ListAndWatch(_ *pluginapi.Empty, kubelet grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		count, resized := d.size()
		devices := make([]*pluginapi.Device, count)
		for i := range devices {
			devices[i] = &pluginapi.Device{ID: strconv.Itoa(i), Health: pluginapi.Healthy}
		}
		if err := kubelet.Send(&pluginapi.ListAndWatchResponse{Devices: devices}); err != nil {
			return err
		}
		select {
		case <-kubelet.Context().Done():
			return nil
		case <-resized:
		}
	}
}

// Allocate gives each container its devices, which need nothing of it, or fails.
func (d *Devices) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	if why := d.fault.Load(); why != nil {
		return nil, status.Error(codes.Unavailable, *why)
	}
	response := &pluginapi.AllocateResponse{}
	for range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerAllocateResponse{})
	}
	return response, nil
}
