package quickstart

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
)

// node does what the local cluster leaves out for pods that are no workers: it places and runs the operator's, as a process with
// the arguments, the configuration and the rights that the pod has, and brings a changed ConfigMap to Volcano's scheduler.
type node struct {
	cluster *cluster.Cluster
	world   *testutil.World
	dir     string
	program string

	operator *testutil.Operator // nil while there is no pod for it
	pod      types.UID          // the one that it was last run for
	conf     string             // of Volcano's scheduler
}

func newNode(ctx context.Context, dir string) *node {
	GinkgoHelper()
	program, err := testutil.BuildOperator(ctx, dir)
	Expect(err).NotTo(HaveOccurred(), "the operator is built")
	n := &node{dir: dir, program: program}
	n.cluster, err = cluster.Start(ctx, cluster.Options{
		GPUNodes: 1, GPUsPerNode: 8, SchedulerConf: shipped, Dir: filepath.Join(dir, "cluster"), Log: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred(), "the cluster starts")
	DeferCleanup(func() {
		n.end()
		Expect(n.cluster.Stop()).To(Succeed(), "no process ended early")
	})
	n.world, err = testutil.NewWorld(n.cluster.KubeconfigPath(), "")
	Expect(err).NotTo(HaveOccurred(), "the cluster is reached")
	return n
}

// shipped is the configuration that Volcano's Helm chart installs.
const shipped = "../testutil/testdata/volcano-shipped.conf"

// sync does what is to be done now.
func (n *node) sync(ctx context.Context) {
	GinkgoHelper()
	n.mountSchedulerConf(ctx)
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: testutil.OperatorNamespace, Name: testutil.OperatorServiceAccount}
	if err := n.world.Client.Get(ctx, key, deployment); err != nil {
		Expect(client.IgnoreNotFound(err)).To(Succeed(), "the operator's Deployment is read")
		n.end()
		return
	}
	Eventually(func() (bool, error) {
		err := n.world.Client.Get(ctx, key, deployment)
		status := deployment.Status
		return status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas == *deployment.Spec.Replicas, err
	}).Should(BeTrue(), "the operator has its pod, of the Deployment as it is now")
	pods := &corev1.PodList{}
	Expect(n.world.Client.List(ctx, pods, client.InNamespace(key.Namespace),
		client.MatchingLabels(deployment.Spec.Selector.MatchLabels))).To(Succeed(), "its pods are listed")
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == "" {
			n.start(ctx, &pod)
		}
	}
}

// mountSchedulerConf has Volcano's scheduler follow its ConfigMap.
func (n *node) mountSchedulerConf(ctx context.Context) {
	GinkgoHelper()
	mounted := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: "volcano-system", Name: "volcano-scheduler-configmap"}
	Expect(n.world.Client.Get(ctx, key, mounted)).To(Succeed(), "Volcano has its configuration")
	if conf := mounted.Data["volcano-scheduler.conf"]; conf != n.conf {
		Expect(n.cluster.SetSchedulerConf(ctx, conf)).To(Succeed(), "the scheduler follows")
		n.conf = conf
	}
}

// start runs the operator for a pod, in place of the one for another, and then places the pod, which KWOK reports ready.
func (n *node) start(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	if n.operator != nil {
		Expect(n.operator.Stop()).To(Succeed(), "the operator of the former pod ends")
	}
	n.pod = pod.UID
	Expect(pod.Spec.Containers[0].Args[0]).To(Equal("run"), "its Deployment names the command")
	args := n.mount(ctx, pod, slices.Clone(pod.Spec.Containers[0].Args[1:]))
	address, err := testutil.FreeAddress()
	Expect(err).NotTo(HaveOccurred(), "there is a port for the webhooks")
	_, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred(), "the address has a port")
	n.routeWebhooks(ctx, port)
	kubeconfig := filepath.Join(n.dir, string(pod.UID)+".kubeconfig")
	Expect(n.cluster.KubeconfigFor(ctx, pod.Namespace, pod.Spec.ServiceAccountName, kubeconfig)).To(Succeed(), "it has its token")
	n.operator, err = testutil.StartOperator(ctx, testutil.OperatorOptions{
		Program: n.program, Kubeconfig: kubeconfig, Log: filepath.Join(n.dir, "operator.log"),
		// Beside the cluster it finds no namespace of its own, and its ports are not its own either.
		Args: append(args, "--leader-election-namespace="+pod.Namespace, "--webhooks", "--webhook-bind-address="+address),
	})
	Expect(err).NotTo(HaveOccurred(), "the operator starts with %v", args)
	Expect(n.world.AwaitWebhooks(ctx)).To(Succeed(), "its webhooks answer")
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "gpu-0"}}
	Expect(n.world.Client.SubResource("binding").Create(ctx, pod, binding)).To(Succeed(), "the pod is placed")
}

// mount writes the ConfigMaps that a pod mounts to files, and returns arguments that name these instead of those in the pod. What
// the operator writes to a claim is there for the next pod, as long as the claim is.
func (n *node) mount(ctx context.Context, pod *corev1.Pod, args []string) []string {
	GinkgoHelper()
	var folders []string // of the pod, and those here that stand for them
	mounted := map[string]*corev1.ConfigMap{}
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		volume, folder := pod.Spec.Volumes[i], filepath.Join(n.dir, string(pod.UID), mount.MountPath)
		switch {
		case volume.ConfigMap != nil:
			mounted[folder] = &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: pod.Namespace, Name: volume.ConfigMap.Name}
			Expect(n.world.Client.Get(ctx, key, mounted[folder])).To(Succeed(), "the ConfigMap of volume %s is there", mount.Name)
		case volume.PersistentVolumeClaim != nil:
			claim := &corev1.PersistentVolumeClaim{}
			key := client.ObjectKey{Namespace: pod.Namespace, Name: volume.PersistentVolumeClaim.ClaimName}
			Expect(n.world.Client.Get(ctx, key, claim)).To(Succeed(), "the claim of volume %s is there", mount.Name)
			n.provision(ctx, claim)
			folder = n.folderOf(claim)
		}
		Expect(os.MkdirAll(folder, 0o700)).To(Succeed(), "there is a folder for %s", mount.MountPath)
		folders = append(folders, mount.MountPath+"/", folder+"/")
	}
	here := strings.NewReplacer(folders...)
	for folder, files := range mounted {
		for name, content := range files.Data {
			Expect(os.WriteFile(filepath.Join(folder, name), []byte(here.Replace(content)), 0o600)).To(Succeed(), "%s is mounted", name)
		}
	}
	for j := range args {
		args[j] = here.Replace(args[j])
	}
	return args
}

// provision does what a provisioner of volumes does, of which the local cluster has none.
func (n *node) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	if claim.Status.Phase == corev1.ClaimBound {
		return
	}
	claim.Status.Phase, claim.Status.AccessModes = corev1.ClaimBound, claim.Spec.AccessModes
	claim.Status.Capacity = claim.Spec.Resources.Requests
	Expect(n.world.Client.Status().Update(ctx, claim)).To(Succeed(), "claim %s is bound", claim.Name)
}

// folderOf is what is on the volume of a claim. Another claim of that name has a volume of its own.
func (n *node) folderOf(claim *corev1.PersistentVolumeClaim) string {
	return filepath.Join(n.dir, "volume-"+string(claim.UID))
}

// routeWebhooks leads the API server to the operator beside the cluster, since Services lead nowhere here: the Service stands for
// this machine, and the webhooks call it at the operator's port.
func (n *node) routeWebhooks(ctx context.Context, port string) {
	GinkgoHelper()
	change := func(o client.Object, kind types.PatchType, patch string) {
		GinkgoHelper()
		Expect(n.world.Client.Patch(ctx, o, client.RawPatch(kind, []byte(patch)))).To(Succeed(), "%T is changed", o)
	}
	change(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: testutil.OperatorNamespace, Name: "tideline-webhook"}},
		types.MergePatchType, `{"spec":{"type":"ExternalName","externalName":"localhost"}}`)
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(n.world.Client.Get(ctx, client.ObjectKey{Name: "tideline-validating-webhook"}, validating)).To(Succeed())
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	Expect(n.world.Client.Get(ctx, client.ObjectKey{Name: "tideline-mutating-webhook"}, mutating)).To(Succeed())
	called := func(webhooks int) string {
		var patch []string
		for i := range webhooks {
			patch = append(patch, fmt.Sprintf(`{"op":"add","path":"/webhooks/%d/clientConfig/service/port","value":%s}`, i, port))
		}
		return "[" + strings.Join(patch, ",") + "]"
	}
	change(validating, types.JSONPatchType, called(len(validating.Webhooks)))
	change(mutating, types.JSONPatchType, called(len(mutating.Webhooks)))
}

// end ends the operator as a kubelet does whose pod was deleted together with its rights.
func (n *node) end() {
	if n.operator != nil {
		n.operator.Kill()
	}
	n.operator = nil
}
