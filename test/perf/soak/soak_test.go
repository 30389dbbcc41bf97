// Package soak has users write thousands of hostile objects, as large as the API server takes them, and holds the operator to its
// limit of memory and to serving others meanwhile.
package soak

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/test/cluster"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

const (
	// soonest is within how many seconds another user's job must have its PodGroup and its pods, whatever others write, beyond
	// what a client waits that writes them itself: the API server is on the same machine, and bears some of these objects badly.
	soonest = 5 * time.Second
	// longest is after how long a job that has neither ends the run.
	longest = 3 * time.Minute
	// writers is how many requests of hostile users are under way at a time. Each has the API server compute for a while, which is
	// on the same machine.
	writers = 1
	// plainEvery is how long that client rests between its writes.
	plainEvery = 500 * time.Millisecond
	// settling is how long memory is watched after each wave.
	settling = 5 * time.Second
	// mallory's namespace, and that of alice.
	hostile, served = "hostile", "served"
	// mallory may write what users may, and profiles. alice may write what users may.
	mallory, alice = "mallory@example.com", "alice@example.com"
)

func TestSoak(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Hostile objects")
}

// Without webhooks all that the schema lets in must be borne; with them each object is judged first, and some are refused.
var _ = Describe("Thousands of hostile objects", func() {
	DescribeTable("leave the operator below its limit of memory, also when it starts anew, others served in 5 s",
		func(ctx SpecContext, webhooks bool) {
			w := prepare(ctx, webhooks)
			attacker := user(ctx, w.in.World, mallory, hostile)
			w.user = user(ctx, w.in.World, alice, served)
			w.begin(ctx)
			defer w.end()

			rows := []row{w.row("before", flooded{})}
			for _, wave := range waves() {
				n := max(1, wave.n*share()/100)
				written := flood(ctx, attacker, n, wave.object)
				if !webhooks {
					Expect(written.refused).To(BeZero(), "the API server takes all of it")
				}
				rows = append(rows, w.settle(ctx, wave.what, written))
				Expect(w.failure()).NotTo(HaveOccurred(), "after %s", wave.what)
			}
			took := w.restart(ctx)
			rows = append(rows, w.settle(ctx, fmt.Sprintf("the operator starts anew, in %.0f s", took.Seconds()), flooded{}))
			AddReportEntry("measured", ReportEntryVisibilityAlways, table(rows))
			Expect(w.failure()).NotTo(HaveOccurred(), "the operator starts beside all of it")
			for _, r := range rows[1:] {
				Expect(r.peak).To(BeNumerically("<", w.limit), "bytes of memory, of %d: %s", w.limit, r.what)
				Expect(r.slowest).To(BeNumerically("<", soonest+r.plain), "until alice had PodGroup and pods: %s", r.what)
				Expect(r.served).To(BeNumerically(">", 0), "alice was served: %s", r.what)
			}
		},
		Entry("without webhooks", false, SpecTimeout(50*time.Minute)),
		Entry("with webhooks", true, SpecTimeout(50*time.Minute)),
	)
})

// prepare starts a cluster, and the operator on it as it is installed.
func prepare(ctx context.Context, webhooks bool) *watch {
	GinkgoHelper()
	GinkgoT().Setenv("CGO_ENABLED", "0") // The figures are those of the operator without the race detector.
	in := suite.Bare(ctx, cluster.Options{})
	Expect(in.Install(ctx)).To(Succeed())
	limit, env, err := testutil.ShippedMemory(ctx)
	Expect(err).NotTo(HaveOccurred())
	address, err := testutil.FreeAddress()
	Expect(err).NotTo(HaveOccurred(), "there is a port for the webhooks")
	// Its caches are filled from an API server that encodes a gigabyte.
	options := testutil.OperatorOptions{Env: env, Patience: 5 * time.Minute}
	if webhooks {
		options.Args = []string{"--webhooks", "--webhook-bind-address=" + address}
	}
	Expect(in.Operate(ctx, options)).To(Succeed())
	if webhooks {
		Expect(in.InstallWebhooks(ctx, address)).To(Succeed(), "the webhooks answer")
	}
	return &watch{in: in, limit: limit, webhooks: webhooks}
}

// share is TIDELINE_SOAK, how much of the whole is written, in percent; 100 by default.
func share() int {
	GinkgoHelper()
	given := os.Getenv("TIDELINE_SOAK")
	if given == "" {
		return 100
	}
	percent, err := strconv.Atoi(given)
	Expect(err).NotTo(HaveOccurred(), "TIDELINE_SOAK is a number")
	return percent
}

// user makes a namespace in which somebody may do what users may, and write PodGroups; mallory may write profiles as well.
func user(ctx context.Context, w *testutil.World, name, namespace string) client.Client {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: namespace}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"scheduling.volcano.sh"}, Resources: []string{"podgroups"}, Verbs: []string{"create", "delete"},
		}}},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "Role", Name: namespace,
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edit"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		},
	}
	if name == mallory {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tideline-profiles"},
		})
	}
	for _, o := range objects {
		Expect(w.Client.Create(ctx, o)).To(Succeed())
	}
	c, err := w.As(name, "system:authenticated")
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error {
		return c.Create(ctx, testutil.Job("probe").In(namespace).Obj(), client.DryRunAll)
	}).Should(Succeed(), "the API server has seen what %s may", name)
	return c
}

// busy holds for an answer of an API server that may give another one later.
func busy(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err) || strings.Contains(err.Error(), "request timed out")
}

// flooded is what became of the objects of a wave: how many were written, how many refused, and how many bytes one has as JSON.
type flooded struct{ written, refused, size int }

// flood creates n objects. What admission refuses counts as refused.
func flood(ctx context.Context, c client.Client, n int, object func(i int) client.Object) flooded {
	GinkgoHelper()
	var refused atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error {
			// An API server and an etcd that have much to do on a small machine say so; whoever is hostile tries again.
			err := retry.OnError(wait.Backoff{Steps: 6, Duration: time.Second, Factor: 2}, busy, func() error {
				return client.IgnoreAlreadyExists(c.Create(ctx, object(i)))
			})
			switch {
			case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
				refused.Add(1)
			case err != nil:
				return fmt.Errorf("create object %d: %w", i, err)
			}
			return nil
		})
	}
	Expect(group.Wait()).To(Succeed(), "all of it is written or refused")
	return flooded{written: n - int(refused.Load()), refused: int(refused.Load()), size: sizeOf(object(n - 1))}
}
