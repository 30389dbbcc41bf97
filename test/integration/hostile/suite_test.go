// Package hostile has a user who may do what users of a namespace may, and no more, try on a real API server and a real Volcano,
// with webhooks on, to hurt others. Its specs bear the numbers of the review that found the ways; those that are refused before
// anything is written are beside the specs of the webhooks. `make test-hostile` runs both.
package hostile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestHostile(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Hostile users")
}

const (
	alice   = "alice@example.com"
	mallory = "mallory@example.com"

	// afterwards is long enough to see that Volcano, which decides here, has stopped no job: a hundred of its cycles.
	afterwards = 10 * time.Second
	// stuckAfter is for how long a merge that is not placed keeps the head of its line.
	stuckAfter = 20 * time.Second
)

// installation is a cluster on which mallory tries things.
type installation struct {
	*testutil.Installation
	store testutil.S3
}

// install installs all that somebody could want to hurt: the webhooks, a store of models, and a ledger in which mallory has used
// a hundred hours of a GPU in profiles budget and denies.
func install(ctx context.Context) *installation {
	GinkgoHelper()
	in := &installation{Installation: suite.Bare(ctx, cluster.Options{GPUNodes: -1, SchedulePeriod: 100 * time.Millisecond})}
	store, err := in.Cluster.StartObjectStore(ctx)
	Expect(err).NotTo(HaveOccurred(), "the object store starts")
	in.store = testutil.S3{
		Endpoint: store.Endpoint, AccessKey: store.AccessKey, SecretKey: store.SecretKey, Directory: store.Directory,
	}
	books, file := filepath.Join(in.Logs(), "ledger.db"), filepath.Join(in.Logs(), "configuration.yaml")
	Expect(recordUse(ctx, books)).To(Succeed(), "what was used is in the ledger")
	Expect(os.WriteFile(file, fmt.Appendf(nil, `apiVersion: config.tideline.io/v1alpha1
kind: Configuration
claims: {placementTimeoutSeconds: %d}
ledger: {file: %q}
merges:
  endpoints: [%q]
  waitingIntervalSeconds: 5
  runningIntervalSeconds: 1
`, int(stuckAfter.Seconds()), books, store.Endpoint), 0o600)).To(Succeed(), "there is a configuration")
	address, err := testutil.FreeAddress()
	Expect(err).NotTo(HaveOccurred(), "there is a port for the webhooks")
	Expect(in.Install(ctx)).To(Succeed(), "Tideline is installed")
	Expect(in.Operate(ctx, testutil.OperatorOptions{
		Args: []string{"--config=" + file, "--webhooks", "--webhook-bind-address=" + address},
	})).To(Succeed(), "the operator runs")
	Expect(in.InstallWebhooks(ctx, address)).To(Succeed(), "the webhooks answer")
	return in
}

// recordUse has a ledger say that mallory used a GPU for a hundred hours, in each of two profiles.
func recordUse(ctx context.Context, file string) error {
	l, err := ledger.Open(ctx, ledger.Options{File: file})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	now := time.Now()
	var used ledger.Entries
	for _, profile := range []string{"budget", "denies"} {
		used.Stays = append(used.Stays, ledger.Stay{
			Pod: ledger.Pod{
				UID: "used-" + profile, Namespace: profile, Name: "used", Node: "gpu-0", Profile: profile, Queue: profile, User: mallory,
				Kind: "Pod", Task: "used", Resources: ledger.Resources{string(testutil.GPUResource): 1000},
			},
			Begin: now.Add(-100 * time.Hour), End: now, Final: true, Outcome: ledger.Succeeded,
		})
	}
	return l.RecordEntries(ctx, used)
}

// person acts in a namespace of their own with the rights that users of a namespace have: role edit, and all of Volcano's
// objects.
type person struct {
	*testutil.Scenario
	name string
	acts client.Client
}

// person gives somebody a namespace, and a node for each number of GPUs.
func (in *installation) person(name, namespace string, gpus ...int64) *person {
	GinkgoHelper()
	s := in.NewScenario(GinkgoT(), namespace, gpus...)
	s.Create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "volcano"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"batch.volcano.sh", "scheduling.volcano.sh"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		},
	})
	testutil.BindUser(s, name, "Role", "volcano")
	p := &person{s, name, testutil.ActAs(s, name, "edit")}
	Eventually(func() error {
		return p.acts.List(s.Context(), &schedulingv1beta1.PodGroupList{}, client.InNamespace(s.Namespace))
	}).Should(Succeed(), "the API server has seen the role")
	return p
}

// submits has the person create objects.
func (p *person) submits(objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(p.acts.Create(p.Context(), o)).To(Succeed(), "%s creates %T %s", p.name, o, o.GetName())
	}
}

// removes has the person delete objects.
func (p *person) removes(objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(p.acts.Delete(p.Context(), o)).To(Succeed(), "%s deletes %T %s", p.name, o, o.GetName())
	}
}

// gang is a PodGroup of the person's that wants all of its pods, on the nodes of a pool, and the pods: one for each number of
// GPUs, changed so.
func (p *person) gang(name, pool string, change func(*corev1.Pod), gpus ...int64) []client.Object {
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name},
		Spec:       schedulingv1beta1.PodGroupSpec{MinMember: int32(len(gpus))},
	}
	objects := []client.Object{group}
	for i, n := range gpus {
		like := p.Job(name).Pool(pool).GPUs(n).Obj().Spec.Template.Spec
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: p.Namespace, Name: testutil.WorkerName(name, i),
				Annotations: map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: name},
			},
			Spec: corev1.PodSpec{SchedulerName: "volcano", NodeSelector: like.NodeSelector, Containers: like.Containers},
		}
		if n == 0 {
			pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		}
		change(pod)
		objects = append(objects, pod)
	}
	return objects
}
