package console

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/console/view"
	"github.com/tideline-io/tideline/test/testutil/browser"
)

// morning is a cluster of six nodes of two teams, in which one training waits.
func morning() *view.Model {
	m := &view.Model{}
	now := time.Now()
	trains := func(namespace, name string, workers ...int64) {
		j := job(namespace, name, "All workers ready.")
		j.Status.Phase, j.Status.Reason, j.Status.Queue = v1beta1.PhaseRunning, v1beta1.ReasonTraining, namespace
		j.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
		for i, held := range workers {
			for len(m.Nodes) <= i {
				m.Nodes = append(m.Nodes, view.Node{Name: fmt.Sprintf("gpu-%d", len(m.Nodes)+1), Device: "NVIDIA-A100", Total: 8000})
			}
			if held == 0 {
				continue
			}
			j.Status.Accelerators += held
			m.Nodes[i].Held = append(m.Nodes[i].Held, view.Holding{
				Job: types.NamespacedName{Namespace: namespace, Name: name}, Accelerators: held * 1000,
			})
		}
		m.Jobs = append(m.Jobs, j)
	}
	trains("ads", "ctr", 8, 8, 4)
	trains("ads", "embedding", 0, 0, 4)
	trains("search", "ranker", 0, 0, 0, 6, 6)
	trains("search", "bert", 0, 0, 0, 0, 0, 4)
	waits := job("search", "speller", "The core of 1 worker of 8 nvidia.com/gpu fits on no node: at most 4 are free on one. "+
		"Surplus of ads/ctr gives way.")
	waits.Status.Queue, waits.Status.Place, waits.Status.Summary, waits.Status.Tier = "search", 1, "0/1 (1..4)", "main-traffic"
	waits.CreationTimestamp = metav1.NewTime(now.Add(-40 * time.Second))
	m.Jobs = append(m.Jobs, waits)
	team := func(name string, used, deserved, borrowed, lent int64, running, waiting int32) {
		p := &v1beta1.ResourceQuotaProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
		gpus := func(n int64) corev1.ResourceList {
			return corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}
		}
		st := &p.Status
		st.Used, st.Deserved, st.Borrowed, st.Lent = gpus(used), gpus(deserved), gpus(borrowed), gpus(lent)
		st.Running, st.Waiting, st.Reason = running, waiting, v1beta1.ReasonConfigured
		st.Available = []v1beta1.AvailableStatus{{Resource: "nvidia.com/gpu", LargestGang: 4}}
		m.Profiles = append(m.Profiles, p)
	}
	team("ads", 24, 16, 8, 0, 2, 0)
	team("search", 16, 32, 0, 8, 2, 1)
	return m
}

// TestPictureOfTheConsole looks at the first page of a plausible cluster as README shows it. TIDELINE_PICTURES is a folder for
// the picture: make pictures writes the one of docs/images anew.
func TestPictureOfTheConsole(t *testing.T) {
	chromium, err := browser.Start(t.Context())
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = chromium.Stop() }()
	g := NewWithT(t)
	page := get(serve(morning(), everything), view.Root, "good").Body.String()
	g.Expect(page).To(And(ContainSubstring("40 of 48"), ContainSubstring("ads/ctr 8, 0 of 8 free"),
		ContainSubstring("search/speller"), ContainSubstring("24 of 16")))
	file := filepath.Join(t.TempDir(), "console.html")
	page = strings.Replace(page, `<link rel="stylesheet" href="/console/page.css">`, "<style>"+style+"</style>", 1)
	g.Expect(os.WriteFile(file, []byte(page), 0o600)).To(Succeed())
	g.Expect(chromium.Show("file://"+file, 1000, "light")).To(Succeed())
	picture, err := chromium.Picture()
	g.Expect(err).NotTo(HaveOccurred())
	if folder := os.Getenv("TIDELINE_PICTURES"); folder != "" {
		g.Expect(os.WriteFile(filepath.Join(folder, "console.png"), picture, 0o600)).To(Succeed())
	}
}
