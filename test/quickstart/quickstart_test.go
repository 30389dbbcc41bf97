package quickstart

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/markdown"
)

// In one order on one cluster, because each step is what the next one finds.
// rolesOfSamples are rights of components that samples need.
var rolesOfSamples = []string{"config/components/ssh-keys/role.yaml", "config/components/job-network-policy/role.yaml"}

var _ = Describe("A new user", Ordered, func() {
	var n *node
	var u *user
	var bare []string
	BeforeAll(func(ctx SpecContext) {
		dir, err := os.MkdirTemp("", "tideline-quickstart-")
		Expect(err).NotTo(HaveOccurred(), "there is a folder")
		DeferCleanup(func() {
			if CurrentSpecReport().Failed() {
				AddReportEntry("The logs of all processes are in " + dir)
				return
			}
			Expect(os.RemoveAll(dir)).To(Succeed(), "nothing is left behind")
		})
		n = newNode(ctx, dir)
		u = newUser(ctx, dir, n)
		u.do(ctx, "what a cluster has", "kubectl create namespace ads")
		u.do(ctx, "what a namespace has", "kubectl wait -n ads --for=create sa/default cm/kube-root-ca.crt --timeout=1m")
		bare, err = objects(ctx, n.world.Config)
		Expect(err).NotTo(HaveOccurred(), "the objects of the bare cluster are listed")
	})
	leavesNothing := func(ctx SpecContext) {
		GinkgoHelper()
		Eventually(func() (string, error) {
			now, err := objects(ctx, n.world.Config)
			return diff.Diff(bare, now), err
		}).Should(BeEmpty(), "nothing is left of Tideline")
	}

	It("installs Tideline as README.md says", func(ctx SpecContext) {
		u.follow(ctx, "README.md", markdown.Chapter(u.read("README.md"), "Install"))
		Expect(u.engineRan()).To(MatchRegexp(
			`^build (--build-arg \w+=\S+ )+-t registry\.example/tideline:dev \.\npush registry\.example/tideline:dev\n$`),
			"the image is built and pushed under the name that is installed")
	})

	It("can apply all YAML that pages and samples show", func(ctx SpecContext) { applyAll(ctx, u) })

	It("runs the samples and sees them at a glance", func(ctx SpecContext) {
		for _, role := range rolesOfSamples {
			u.do(ctx, "what one of the samples needs", "kubectl apply -f "+role)
		}
		u.do(ctx, "samples", "kubectl apply -k config/samples")
		Eventually(func() (string, error) { return u.run(ctx, "kubectl get tideline -A", "") }).Should(And(
			MatchRegexp(`(?m)^NAMESPACE +NAME +PHASE +READY +QUEUE +TIER +WHY +RESTARTS +AGE$`),
			MatchRegexp(`(?m)^default +\S+/ctr +Running +\d/\d \(2\.\.8\) +default +exploratory +\w+ +0 `),
			MatchRegexp(`(?m)^default +\S+/ranker-large +Pending .* (Unschedulable|NeverFits) `),
		), "some train, some wait, and each says so")
	})

	It("operates it as docs/operations.md says", func(ctx SpecContext) {
		u.follow(ctx, "docs/operations.md", u.read("docs/operations.md"))
		u.do(ctx, "docs/operations.md", "kubectl replace --force -f jobs.yaml")
		Expect(n.operator.Misbehavior()).To(Succeed(), "the operator's log is clean")
	})

	It("keeps the ledger on its claim, whichever pod the operator is in", func(ctx SpecContext) {
		claim := &corev1.PersistentVolumeClaim{}
		key := client.ObjectKey{Namespace: testutil.OperatorNamespace, Name: "tideline-ledger"}
		Expect(n.world.Client.Get(ctx, key, claim)).To(Succeed(), "the claim is installed")
		known := func() (time.Time, error) {
			l, err := ledger.OpenToRead(ctx, ledger.Options{File: filepath.Join(n.folderOf(claim), "ledger", "ledger.db")})
			if err != nil {
				return time.Time{}, err
			}
			since, err := l.KnownSince(ctx)
			return since, errors.Join(err, l.Close())
		}
		Eventually(known).ShouldNot(BeZero(), "the operator keeps its ledger there")
		before, err := known()
		Expect(err).NotTo(HaveOccurred())
		pod := n.pod
		const operator = " --namespace tideline-system deployment/tideline-controller-manager"
		u.do(ctx, "another pod", "kubectl rollout restart"+operator)
		u.do(ctx, "another pod", "kubectl rollout status --timeout=1m"+operator)
		Expect(n.pod).NotTo(Equal(pod), "it is in another pod")
		Expect(known()).To(Equal(before), "the ledger is the same, and knows since the same time")
	})

	It("removes it all", func(ctx SpecContext) {
		for _, role := range rolesOfSamples {
			u.do(ctx, "docs/workers.md", "kubectl delete -f "+role)
		}
		u.do(ctx, "what docs/operations.md created", "kubectl delete poddisruptionbudget ctr")
		u.do(ctx, "docs/installation.md", "kubectl delete resourcequotaprofiles --all --timeout=1m")
		u.do(ctx, "README.md", "make undeploy")
		u.do(ctx, "docs/volcano.md", "kubectl replace --force -f volcano-before.yaml")
		leavesNothing(ctx)
		Expect(n.conf).To(Equal(string(content(shipped))), "Volcano has its configuration back")
	})

	It("installs it as config/default is, in one command", func(ctx SpecContext) {
		u.do(ctx, "kustomize", "kubectl apply -k config/default")
		u.do(ctx, "kustomize", "kubectl rollout status -n tideline-system deployment/"+testutil.OperatorServiceAccount+" --timeout 1m")
		u.do(ctx, "the same again", "kubectl apply -k config/default")
		u.do(ctx, "kustomize", "kubectl delete -k config/default")
		leavesNothing(ctx)
	})

	It("goes through docs/quickstart.md, and back", func(ctx SpecContext) {
		u.follow(ctx, "docs/quickstart.md", u.read("docs/quickstart.md"))
		leavesNothing(ctx)
		Expect(n.conf).To(Equal(string(content(shipped))), "Volcano has its configuration back")
		Expect(filepath.Join(u.clone, "my-tideline")).NotTo(BeADirectory(), "the clone is as it was")
	})
})

// content is that of a file.
func content(path string) []byte {
	GinkgoHelper()
	read, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred(), "%s is read", path)
	return read
}
