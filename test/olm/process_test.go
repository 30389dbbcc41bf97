package olm

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/test/testutil"
)

// serviceAccountFolder is where a pod finds its ServiceAccount; the process has a kubeconfig with a token of it instead.
const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// process is the container of the operator's pod as a process beside the cluster. It has the container's arguments, variables and
// mounted files, and no others, but for what follows from where it runs: mounted files are below a folder of the test, ports are
// ones that are free, the API server is found by a kubeconfig, and nobody collects metrics.
type process struct {
	options testutil.OperatorOptions
	// webhooks is the address that serves the webhooks.
	webhooks string
	// probe is the URL of the readiness probe.
	probe string
}

// data is the volume in which the operator keeps its own files.
const data = "data"

// newProcess makes a process of the operator's pod, with its files in dir.
func newProcess(ctx context.Context, c client.Client, dir string) *process {
	GinkgoHelper()
	pods, err := podsOf(ctx, c)
	Expect(err).NotTo(HaveOccurred(), "the pod is read")
	Expect(pods).To(HaveLen(1), "there is one operator")
	pod := pods[0]
	Expect(pod.Spec.Containers).To(HaveLen(1), "it has one container")
	container := pod.Spec.Containers[0]
	Expect(container.Command).To(BeEmpty(), "the image says which program runs")

	p := &process{options: testutil.OperatorOptions{Bare: true}}
	args := strings.Join(container.Args, "\n")
	folders := map[string]string{}
	for _, m := range container.VolumeMounts {
		if m.MountPath == serviceAccountFolder {
			continue
		}
		folders[m.MountPath] = filepath.Join(dir, m.MountPath)
		mount(ctx, c, &pod, m.Name, dir, m.MountPath)
		args = strings.ReplaceAll(args, m.MountPath+"/", folders[m.MountPath]+"/")
	}
	for _, v := range container.Env {
		Expect(v.ValueFrom).To(BeNil(), "variable %s has a value", v.Name)
		p.options.Env = append(p.options.Env, v.Name+"="+v.Value)
	}

	certificates := folders[config.DefaultConfiguration().Webhooks.Certificates.Directory]
	Expect(certificates).NotTo(BeEmpty(), "OLM's certificate is mounted where the operator looks for it")
	probes, err := testutil.FreeAddress()
	Expect(err).NotTo(HaveOccurred(), "there is a port for probes")
	p.webhooks, err = testutil.FreeAddress()
	Expect(err).NotTo(HaveOccurred(), "there is a port for the webhooks")
	p.probe = "http://" + probes + container.ReadinessProbe.HTTPGet.Path
	args, named := strings.CutPrefix(args, "run\n")
	p.options.Former = !named
	p.options.Args = append(strings.Split(args, "\n"),
		"--webhook-cert-dir="+certificates,
		"--webhook-bind-address="+p.webhooks,
		"--health-probe-bind-address="+probes,
		"--metrics-bind-address=0",
		"--leader-election-namespace="+pod.Namespace,
	)
	return p
}

// mount does what a kubelet does: it writes a volume of the pod to files, below dir. What they say of volumes for files of the
// operator's own follows.
func mount(ctx context.Context, c client.Client, pod *corev1.Pod, volume, dir, path string) {
	GinkgoHelper()
	folder := filepath.Join(dir, path)
	Expect(os.MkdirAll(folder, 0o755)).To(Succeed(), "there is a folder for %s", volume)
	files := map[string][]byte{}
	read := func(o client.Object, name string) {
		o.SetNamespace(pod.Namespace)
		o.SetName(name)
		Eventually(func() error { return c.Get(ctx, client.ObjectKeyFromObject(o), o) }).Should(Succeed(), "%T %s is read", o, name)
	}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Name != volume:
		case v.EmptyDir != nil:
			return
		case v.ConfigMap != nil:
			o := &corev1.ConfigMap{}
			read(o, v.ConfigMap.Name)
			for name, content := range o.Data {
				for _, m := range pod.Spec.Containers[0].VolumeMounts {
					if m.Name == data {
						content = strings.ReplaceAll(content, m.MountPath+"/", filepath.Join(dir, m.MountPath)+"/")
					}
				}
				files[name] = []byte(content)
			}
		case v.Secret != nil:
			o := &corev1.Secret{}
			read(o, v.Secret.SecretName)
			for _, item := range v.Secret.Items {
				Expect(o.Data).To(HaveKey(item.Key), "the Secret %s has what is mounted", o.Name)
				files[item.Path] = o.Data[item.Key]
			}
		}
	}
	Expect(files).NotTo(BeEmpty(), "volume %s is a ConfigMap or a Secret with files in it", volume)
	for name, content := range files {
		Expect(os.WriteFile(filepath.Join(folder, name), content, 0o600)).To(Succeed(), "%s is mounted", name)
	}
}

// ready is what the process answers to the readiness probe.
func (p *process) ready(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.probe, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// route leads the API server to the process where it calls the operator's webhooks, as kube-proxy would: OLM's Service, for whose
// name its certificate is, stands for this machine, and the configurations call it at the port of the process. What they trust
// stays as OLM wrote it.
func route(ctx context.Context, c client.Client, csv *unstructured.Unstructured, address string) {
	GinkgoHelper()
	host, port, err := net.SplitHostPort(address)
	Expect(err).NotTo(HaveOccurred(), "the address has a port")
	service := &corev1.Service{}
	service.Namespace, service.Name = testutil.OperatorNamespace, deployment().Name+"-service"
	external := fmt.Sprintf(`{"spec":{"type":"ExternalName","externalName":%q,"clusterIP":null,"clusterIPs":null}}`, host)
	toHere := client.RawPatch(types.MergePatchType, []byte(external))
	Expect(c.Patch(ctx, service, toHere)).To(Succeed(), "the Service is this machine")
	defined, _, err := unstructured.NestedSlice(csv.Object, "spec", "webhookdefinitions")
	Expect(err).NotTo(HaveOccurred(), "the ClusterServiceVersion lists webhooks")
	Expect(defined).NotTo(BeEmpty(), "the bundle has webhooks")
	all, err := configurations(ctx, c, csv.GetName())
	Expect(err).NotTo(HaveOccurred(), "the configurations are read")
	Expect(all).To(HaveLen(len(defined)), "OLM made one for each webhook")
	replaced := fmt.Sprintf(`[{"op":"replace","path":"/webhooks/0/clientConfig/service/port","value":%s}]`, port)
	toPort := client.RawPatch(types.JSONPatchType, []byte(replaced))
	for _, o := range all {
		Expect(c.Patch(ctx, o, toPort)).To(Succeed(), "%s calls the process", o.GetName())
	}
}
