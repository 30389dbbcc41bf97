package view

import (
	"fmt"
	"net/url"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
)

// mostCoreWorkers is the largest minReplicas of a training, and mostOfADevice how many accelerators one worker may ask for here.
const mostCoreWorkers, mostOfADevice = 4096, 1024

// mostCPU and mostMemory may one worker ask for here, so that no sum over all overflows.
var mostCPU, mostMemory = resource.MustParse("1024"), resource.MustParse("2Ti")

// plain are the quantities that are read: of an exponent such as 1e999999999 to parse or compare it would take all memory.
var plain = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,3})?([mkMGT]|[KMGT]i)?$`)

// WhatIf is the form by which people ask when a training that does not exist would start.
type WhatIf struct {
	Form

	// Job is what is asked about; nil while nothing is asked, or something is wrong.
	Job *v1beta1.ElasticTrainingJob
}

// NewWhatIf reads the form. With no field in the query nothing is asked yet.
func NewWhatIf(query url.Values, cfg *config.Configuration) *WhatIf {
	var tiers []string
	usual := ""
	for _, t := range cfg.Tiers {
		tiers = append(tiers, t.Name)
		if t.Default {
			usual = t.Name
		}
	}
	w := &WhatIf{Form: Form{Fields: []Field{
		{Name: "namespace", Label: "Namespace"},
		{Name: "workers", Label: "Core workers (minReplicas)", Value: "2"},
		{Name: "accelerators", Label: "Accelerators of each", Value: "1"},
		{Name: "resource", Label: "Which", Value: config.AcceleratorResource(""), Options: cfg.Accelerators.ResourceNames()},
		{Name: "cpu", Label: "CPU of each", Value: "4"},
		{Name: "memory", Label: "Memory of each", Value: "16Gi"},
		{Name: "tier", Label: "Tier", Value: usual, Options: tiers},
	}}}
	if len(query) > 0 {
		w.fill(query)
		w.Job = w.read(cfg)
	}
	return w
}

// read makes the training that the fields ask about; nil, and what is wrong, if they make none.
func (w *WhatIf) read(cfg *config.Configuration) *v1beta1.ElasticTrainingJob {
	amount := func(name, example string, most resource.Quantity) (q resource.Quantity) {
		if plain.MatchString(w.value(name)) {
			q = resource.MustParse(w.value(name))
		}
		if q.Sign() <= 0 || q.Cmp(most) > 0 {
			w.refuse(name, fmt.Sprintf("an amount up to %s, such as %s", &most, example))
		}
		return q
	}
	if len(validation.IsDNS1123Label(w.value("namespace"))) > 0 {
		w.refuse("namespace", "the name of a namespace")
	}
	workers, accelerators := w.number("workers", 1, mostCoreWorkers), w.number("accelerators", 0, mostOfADevice)
	requests := corev1.ResourceList{
		corev1.ResourceCPU: amount("cpu", "4 or 500m", mostCPU), corev1.ResourceMemory: amount("memory", "16Gi", mostMemory),
	}
	device := w.device("resource", cfg)
	if _, known := cfg.Tiers.FindTier(w.value("tier")); !known {
		w.refuse("tier", "a tier of the operator's configuration")
	}
	if len(w.Wrong) > 0 {
		return nil
	}
	limits := corev1.ResourceList{corev1.ResourceMemory: requests[corev1.ResourceMemory]}
	if accelerators > 0 {
		requests[device] = *resource.NewQuantity(accelerators, resource.DecimalSI)
		limits[device] = requests[device]
	}
	job := &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.value("namespace"), Name: "what-if"}}
	job.Spec.MinReplicas, job.Spec.MaxReplicas, job.Spec.Tier = int32(workers), int32(workers), w.value("tier")
	job.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "trainer", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
	}}
	return job
}
