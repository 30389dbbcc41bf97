package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorversion "github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	annotationImage    = "containerImage"
	annotationExamples = "alm-examples"
)

// serviceVersion completes the base of the ClusterServiceVersion.
func (p *parts) serviceVersion(in Input) (*v1alpha1.ClusterServiceVersion, error) {
	csv := p.base.DeepCopy()
	if in.Version != "" {
		version, err := semver.Parse(strings.TrimPrefix(in.Version, "v"))
		if err != nil {
			return nil, fmt.Errorf("version %q: %w", in.Version, err)
		}
		csv.Spec.Version = operatorversion.OperatorVersion{Version: version}
	}
	image := cmp.Or(in.Image, csv.Annotations[annotationImage]+":v"+csv.Spec.Version.String())
	examples, err := examples(p.samples)
	if err != nil {
		return nil, err
	}
	csv.Name = packageName + ".v" + csv.Spec.Version.String()
	csv.Annotations = maps.Clone(csv.Annotations)
	csv.Annotations[annotationExamples] = examples
	csv.Annotations[annotationImage] = image
	csv.Spec.Description = in.Description
	csv.Spec.Icon = []v1alpha1.Icon{{Data: base64.StdEncoding.EncodeToString(in.Icon), MediaType: "image/svg+xml"}}
	csv.Spec.InstallStrategy = p.installStrategy(image)
	csv.Spec.RelatedImages = []v1alpha1.RelatedImage{{Name: packageName, Image: image}}
	if csv.Spec.WebhookDefinitions, err = p.webhooks(); err != nil {
		return nil, err
	}
	for _, crd := range p.crds {
		owned, err := describe(crd, in.Docs)
		if err != nil {
			return nil, err
		}
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, owned...)
	}
	return csv, nil
}

// examples renders the samples, the shortest training first: consoles offer it to whoever creates a first object.
func examples(samples []*unstructured.Unstructured) (string, error) {
	lengths := map[*unstructured.Unstructured]int{}
	for _, sample := range samples {
		content, err := sample.MarshalJSON()
		if err != nil {
			return "", err
		}
		lengths[sample] = len(content)
	}
	sorted := slices.SortedStableFunc(slices.Values(samples), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(lengths[a], lengths[b]))
	})
	content, err := json.MarshalIndent(sorted, "", "  ")
	return string(content), err
}

// rank is lower for trainings, which people create first.
func rank(sample *unstructured.Unstructured) int {
	if sample.GetKind() == "ElasticTrainingJob" {
		return 0
	}
	return 1
}

// installStrategy is the operator's Deployment and what its ServiceAccount may do.
func (p *parts) installStrategy(image string) v1alpha1.NamedInstallStrategy {
	deployment := p.deployments[0]
	spec := deployment.Spec.DeepCopy()
	for i := range spec.Template.Spec.Containers {
		spec.Template.Spec.Containers[i].Image = image
	}
	account := spec.Template.Spec.ServiceAccountName
	return v1alpha1.NamedInstallStrategy{
		StrategyName: v1alpha1.InstallStrategyNameDeployment,
		StrategySpec: v1alpha1.StrategyDetailsDeployment{
			DeploymentSpecs:    []v1alpha1.StrategyDeploymentSpec{{Name: deployment.Name, Label: deployment.Labels, Spec: *spec}},
			ClusterPermissions: []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: p.clusterRules}},
			Permissions:        []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: p.ownRules}},
		},
	}
}

// webhooks describes the webhooks, those that change objects first, as the API server calls them.
func (p *parts) webhooks() ([]v1alpha1.WebhookDescription, error) {
	var all []v1alpha1.WebhookDescription
	for _, of := range []struct {
		kind     v1alpha1.WebhookAdmissionType
		webhooks []admissionregistrationv1.MutatingWebhook
	}{
		{v1alpha1.MutatingAdmissionWebhook, p.mutating}, {v1alpha1.ValidatingAdmissionWebhook, p.validating},
	} {
		for _, w := range of.webhooks {
			port, err := p.portOf(w)
			if err != nil {
				return nil, fmt.Errorf("webhook %s: %w", w.Name, err)
			}
			all = append(all, v1alpha1.WebhookDescription{
				GenerateName: w.Name, Type: of.kind, DeploymentName: p.deployments[0].Name,
				ContainerPort: port.Port, TargetPort: &port.TargetPort, WebhookPath: w.ClientConfig.Service.Path,
				Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy, ObjectSelector: w.ObjectSelector,
				SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions,
				ReinvocationPolicy: w.ReinvocationPolicy,
			})
		}
	}
	return all, nil
}

// judgesItself tells of a webhook whose matchConditions only spare calls: it lets pass by itself what they would keep from it
// (docs/ownership.md).
func judgesItself(webhook string) bool {
	return strings.HasPrefix(webhook, "default.") || strings.HasPrefix(webhook, "validate.") ||
		webhook == "approve.tideline.io" || webhook == "approval.tideline.io"
}

// portOf returns the port at which the API server finds a webhook. It refuses a webhook that OLM would call for more than the
// manifests say, because its description has no place for it.
func (p *parts) portOf(w admissionregistrationv1.MutatingWebhook) (corev1.ServicePort, error) {
	to := w.ClientConfig.Service
	switch {
	case to == nil || len(p.services[to.Name].Spec.Ports) != 1:
		return corev1.ServicePort{}, fmt.Errorf("its Service %v is not among the manifests, or has not one port", to)
	case w.NamespaceSelector != nil:
		return corev1.ServicePort{}, errors.New("a bundle cannot say namespaceSelector")
	case len(w.MatchConditions) > 0 && !judgesItself(w.Name):
		return corev1.ServicePort{}, errors.New("a bundle cannot say matchConditions")
	}
	return p.services[to.Name].Spec.Ports[0], nil
}

// describe describes each version of a kind that the API server serves.
func describe(crd apiextensionsv1.CustomResourceDefinition, docs Docs) ([]v1alpha1.CRDDescription, error) {
	kind := crd.Spec.Names.Kind
	doc := docs.Kinds[kind]
	if doc.DisplayName == "" || len(doc.Resources) == 0 {
		return nil, fmt.Errorf("type %s lacks marker +%sdisplayName or +%sresources", kind, markerPrefix, markerPrefix)
	}
	var all []v1alpha1.CRDDescription
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		schema := version.Schema.OpenAPIV3Schema
		owned := v1alpha1.CRDDescription{
			Name: crd.Name, Version: version.Name, Kind: kind, DisplayName: doc.DisplayName,
			Description: sentence(schema.Description), Resources: doc.Resources,
		}
		for _, d := range descriptors(schema.Properties["spec"], docs.Fields[kind+"Spec"], specDescriptors(version.Subresources)) {
			owned.SpecDescriptors = append(owned.SpecDescriptors, v1alpha1.SpecDescriptor(d))
		}
		for _, d := range descriptors(schema.Properties["status"], docs.Fields[kind+"Status"], statusDescriptors) {
			owned.StatusDescriptors = append(owned.StatusDescriptors, v1alpha1.StatusDescriptor(d))
		}
		all = append(all, owned)
	}
	return all, nil
}
