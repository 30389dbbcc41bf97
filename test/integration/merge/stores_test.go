package merge

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

var _ = Describe("stores", func() {
	It("behaviour 6: wrong credentials, forbidden endpoint, no bucket: clear words, and the line goes on", func() {
		p := newPool("stores", 4)
		p.Due("good", 12*time.Hour)
		p.Create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "wrong"},
			StringData: map[string]string{"AWS_ACCESS_KEY_ID": given.Store.AccessKey, "AWS_SECRET_ACCESS_KEY": "not-the-key"},
		})
		bad := func(name string, change func(*v1beta1.ModelStore)) {
			p.Due(name, 90*time.Hour)
			p.Create(p.merge(name).With(func(s *v1beta1.MergeJobSpec) { change(&s.Store) }).Obj())
		}
		bad("wrong", func(s *v1beta1.ModelStore) { s.S3.CredentialsRef.Name = "wrong" })
		bad("none", func(s *v1beta1.ModelStore) { s.S3.CredentialsRef.Name = "nobodys" })
		bad("elsewhere", func(s *v1beta1.ModelStore) { s.S3.Endpoint = "http://169.254.169.254" })
		bad("bucket", func(s *v1beta1.ModelStore) { s.S3.Bucket = "not-there" })
		p.Create(p.merge("good").Obj())
		for name, reason := range map[string]string{
			"wrong": v1beta1.ReasonStoreForbidden, "none": v1beta1.ReasonCredentialsMissing,
			"elsewhere": v1beta1.ReasonStoreNotAllowed, "bucket": v1beta1.ReasonBucketNotFound,
		} {
			Eventually(p.FetchMerge(name)).Should(And(haveReason(reason), haveSummary("Waiting (store unavailable)")), name)
			job := p.ReadMerge(name)
			Expect(meta.IsStatusConditionTrue(job.Status.Conditions, v1beta1.ConditionStoreUnavailable)).To(BeTrue(), name)
			Expect(job.Status.Message).NotTo(ContainSubstring("not-the-key"))
		}
		Eventually(p.running("good")).Should(Equal(4), "the line goes on")
	})

	It("behaviour 6: an unreachable store keeps its place, lets the next pass, and goes on by itself", func(ctx SpecContext) {
		p := newPool("outage", 4)
		p.Due("busy", 99*time.Hour)
		p.Due("a", 50*time.Hour)
		p.Due("b", 40*time.Hour)
		p.Create(p.merge("busy").Obj())
		Eventually(p.running("busy")).Should(Equal(4))
		down := serve(given.Outage, strings.TrimPrefix(given.Store.Endpoint, "http://"))
		p.Create(p.merge("a").With(func(s *v1beta1.MergeJobSpec) {
			s.Store.S3.Endpoint, s.Suspend = "http://"+given.Outage, true
		}).Obj())
		Eventually(p.FetchMerge("a")).Should(HaveField("Status.Weight", Not(BeNil())), "its store was read")
		down()
		Eventually(p.FetchMerge("a"), 90*time.Second).Should(haveCondition(v1beta1.ConditionStoreUnavailable), "and is gone")
		p.Patch(p.ReadMerge("a"), `{"spec":{"suspend":false}}`)
		p.Create(p.merge("b").Obj())
		Eventually(p.FetchMerge("a")).Should(And(HaveField("Status.Summary", HavePrefix("Queued (")),
			HaveField("Status.Message", ContainSubstring("keeps its place"))))
		Eventually(p.FetchMerge("busy")).Should(haveSummary("Running (4/4)"))
		p.finish(ctx, p.ReadMerge("busy"))
		Eventually(p.running("b")).Should(Equal(4), "the next passes")
		up := serve(given.Outage, strings.TrimPrefix(given.Store.Endpoint, "http://"))
		defer up()
		Eventually(p.FetchMerge("b")).Should(haveSummary("Running (4/4)"))
		p.finish(ctx, p.ReadMerge("b"))
		Eventually(p.running("a"), 2*time.Minute).Should(Equal(4), "it goes on by itself")
	}, SpecTimeout(5*time.Minute))

	It("behaviour 6: 100,000 increments, of which a run merges 5,000, and the next run the next", suite.Long, func(ctx SpecContext) {
		p := newPool("many", 4)
		p.Increments("a", 1, 1) // makes the folder
		folder := filepath.Join(given.Store.Directory, p.Namespace, "a", "inc")
		for i := 2; i <= 100_000; i++ {
			Expect(os.WriteFile(filepath.Join(folder, fmt.Sprintf("%06d", i)), nil, 0o600)).To(Succeed())
		}
		p.Create(p.merge("a").With(func(s *v1beta1.MergeJobSpec) { s.Weight.PerIncrement = 1 }).Obj())
		Eventually(p.FetchMerge("a"), 4*time.Minute).Should(And(haveSummary("Running (4/4)"),
			HaveField("Status.Increments", int32(10_000)),
			HaveField("Status.Run.Increments", int32(5000)), HaveField("Status.Run.LastIncrement", "005000")))
		list := names(testutil.Get(p.Scenario, &corev1.ConfigMap{}, "a-merge-increments"))
		Expect(list).To(HaveLen(5000))
		p.finish(ctx, p.ReadMerge("a"))
		Eventually(p.FetchMerge("a"), 4*time.Minute).Should(And(haveSummary("Running (4/4)"),
			HaveField("Status.Increments", int32(10_000)),
			HaveField("Status.Run.LastIncrement", "010000")), "the rest weighs enough to go on at once")
	}, SpecTimeout(9*time.Minute))

	It("behaviour 6: a store whose clock is ahead makes no model young for ever", func() {
		p := newPool("restart", 4)
		p.Due("a", -5*time.Hour) // five hours in the future
		p.Date("a", "inc/000003", time.Now().Add(6*time.Hour))
		p.Create(p.merge("a").With(func(s *v1beta1.MergeJobSpec) { s.Schedule.Interval.Duration = 10 * time.Second }).Obj())
		Eventually(p.FetchMerge("a")).Should(haveReason(v1beta1.ReasonNotDue))
		Eventually(p.running("a")).Should(Equal(4), "its age counts from when it was seen")
	})
})

// names lists what the ConfigMap of a run says.
func names(list *corev1.ConfigMap) []string {
	GinkgoHelper()
	z, err := gzip.NewReader(bytes.NewReader(list.BinaryData["increments.gz"]))
	Expect(err).NotTo(HaveOccurred())
	content, err := io.ReadAll(z)
	Expect(err).NotTo(HaveOccurred())
	return strings.Fields(string(content))
}

// serve leads an address to another, until what it returns is called.
func serve(address, to string) (end func()) {
	GinkgoHelper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	Expect(err).NotTo(HaveOccurred())
	connections := make(chan net.Conn, 1024)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			connections <- in
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	return func() {
		_ = l.Close()
		for {
			select {
			case c := <-connections:
				_ = c.Close()
			default:
				return
			}
		}
	}
}
