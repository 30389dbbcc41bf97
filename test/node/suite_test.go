//go:build linux

package node_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/node"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// gpus are those of the node, which has none: a device plugin of ours offers them.
const gpus = 4

func TestNode(t *testing.T) {
	if err := node.Missing(); err != nil {
		t.Fatal(err)
	}
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Training on a real node")
}

// machine is the only node of the cluster on which pods run, and devices are its GPUs.
var (
	machine *node.Node
	devices *node.Devices
)

var shared = suite.New(cluster.Options{GPUNodes: -1, SchedulePeriod: 100 * time.Millisecond},
	func(ctx context.Context, c *cluster.Cluster) error {
		images, err := images(ctx)
		if err != nil {
			return err
		}
		w, err := testutil.NewWorld(c.KubeconfigPath(), "")
		if err != nil {
			return err
		}
		machine, err = node.Start(ctx, w.Config, w.Kubeconfig, node.Options{
			Images: images, Log: GinkgoWriter, Logs: filepath.Dir(w.Kubeconfig),
		})
		if err != nil {
			return err
		}
		DeferCleanup(func() { Expect(machine.Stop()).To(Succeed()) })
		devices = machine.Offer(testutil.GPUResource, gpus, GinkgoWriter)
		Eventually(offer(ctx, w.Client)).Should(And(
			HaveField("Conditions", ContainElement(And(
				HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue)))),
			HaveField("Allocatable", HaveKeyWithValue(testutil.GPUResource, resource.MustParse(strconv.Itoa(gpus))))),
			"the node is Ready, and has its GPUs")
		return nil
	})

// offer reads what the node says of itself.
func offer(ctx context.Context, c client.Client) func() (corev1.NodeStatus, error) {
	return func() (corev1.NodeStatus, error) {
		n := &corev1.Node{}
		err := c.Get(ctx, client.ObjectKey{Name: node.Name}, n)
		return n.Status, err
	}
}

// resize changes how many GPUs the node has, and waits until it says so: the kubelet rejects a worker that has none, and its job
// then avoids the node.
func resize(ctx context.Context, count int) {
	GinkgoHelper()
	devices.Resize(count)
	Eventually(offer(ctx, shared.World.Client)).WithTimeout(time.Minute).Should(
		HaveField("Allocatable", HaveKeyWithValue(testutil.GPUResource, resource.MustParse(strconv.Itoa(count)))))
}

// images are that of the example, on our base in place of PyTorch's, and that of MPI jobs.
func images(ctx context.Context) ([]node.Image, error) {
	base, err := node.Base(ctx, GinkgoWriter)
	if err != nil {
		return nil, err
	}
	folder := GinkgoT().TempDir()
	example := filepath.Join("..", "..", "docs", "examples", "pytorch-elastic")
	recipe, err := os.ReadFile(filepath.Join(example, "Dockerfile"))
	if err != nil {
		return nil, err
	}
	training, err := node.Build(base, example, string(recipe), folder)
	if err != nil {
		return nil, fmt.Errorf("the example's image: %w", err)
	}
	training.Name, base.Name = trainingImage, mpiImage
	return []node.Image{training, base}, nil
}
