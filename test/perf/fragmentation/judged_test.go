package main

import (
	"encoding/csv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/capacity/devices"
)

// memoryOfDevice is how many MiB each device has. Pods of openb ask for thousandths of a device.
const memoryOfDevice = 16384

// specOf is a pod of openb as docs/volcano.md has people write it: parts of a GPU are a vGPU with its memory and cores.
func specOf(gpus, milli int64, models string) (*corev1.PodSpec, corev1.ResourceList) {
	asks := list(shape{1000, 1024, 0})
	switch {
	case gpus == 1 && milli < 1000:
		asks[devices.Number] = resource.MustParse("1")
		asks[devices.Memory] = *resource.NewQuantity(milli*memoryOfDevice/1000, resource.DecimalSI)
		asks[devices.Cores] = *resource.NewQuantity((milli+9)/10, resource.DecimalSI)
	case gpus > 0:
		asks[gpu] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: asks, Requests: asks}}}}
	if models != "" {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: "nvidia.com/gpu.product", Operator: corev1.NodeSelectorOpIn, Values: strings.Split(models, "|"),
				}},
			}}},
		}}
	}
	return spec, asks
}

// unjudged counts the pods that the model does not cover, and those that ask for a part of a GPU.
type unjudged struct{ pods, beyond, parts int }

func (u *unjudged) add(gpus, milli int64, models string) {
	spec, asks := specOf(gpus, milli, models)
	u.pods++
	if s := capacity.ShapeOf(&metav1.ObjectMeta{}, spec, asks, nil); s.Unmodelled != "" {
		u.beyond++
	} else if s.Wishes != nil {
		u.parts++
	}
}

func (u *unjudged) expectFew(t *testing.T) {
	t.Helper()
	t.Logf("%d of %d pods ask for a part of a GPU, and %d are not judged", u.parts, u.pods, u.beyond)
	NewWithT(t).Expect(float64(u.beyond)).To(BeNumerically("<", 0.02*float64(u.pods)), "less than two per cent are left to Volcano")
	NewWithT(t).Expect(float64(u.parts)).To(BeNumerically("~", 0.377*float64(u.pods), 0.05*float64(u.pods)))
}

// As many pods as openb has, of the kinds and sizes that it has: 37.8 % ask for a part of a GPU.
func TestNearlyAllPodsLikeOpenbsAreJudged(t *testing.T) {
	random, u := rand.New(rand.NewPCG(1, 1)), &unjudged{}
	for range 8152 {
		switch kind := random.IntN(1000); {
		case kind < 378:
			u.add(1, []int64{50, 110, 160, 230, 320, 460, 470, 590, 650, 810}[random.IntN(10)], "")
		case kind < 858:
			u.add(1, 1000, []string{"", "V100M16|V100M32"}[random.IntN(2)])
		case kind < 867:
			u.add([]int64{2, 4, 8}[random.IntN(3)], 1000, "")
		default:
			u.add(0, 0, "")
		}
	}
	u.expectFew(t)
}

// The trace itself, where it is: OPENB, the folder that the Makefile names.
func TestNearlyAllOfOpenbsPodsAreJudged(t *testing.T) {
	folder := os.Getenv("OPENB")
	if folder == "" {
		folder = "../../../../shared/data"
	}
	f, err := os.Open(folder + "/openb_pod_list_default.csv")
	if err != nil {
		t.Skipf("the trace is not here: %v", err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	u := &unjudged{}
	for _, row := range rows[1:] {
		gpus, _ := strconv.ParseInt(row[at["num_gpu"]], 10, 64)
		milli, _ := strconv.ParseInt(row[at["gpu_milli"]], 10, 64)
		u.add(gpus, milli, row[at["gpu_spec"]])
	}
	u.expectFew(t)
}
