package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tideline-io/tideline/internal/platform/priorityclass"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/config/rbac"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/webhook"
)

// GatherFacts collects the facts with the rights of whoever asks. It returns an error when the cluster cannot be asked.
func GatherFacts(ctx context.Context, c client.Client, d discovery.DiscoveryInterface) (Facts, error) {
	f := Facts{Namespace: rbac.Namespace, Queues: map[string]string{}}
	server, err := d.ServerVersion()
	if err != nil {
		return f, fmt.Errorf("ask the API server for its version: %w", err)
	}
	f.Server = server.GitVersion
	kinds := append(gang.VolcanoKinds(), v1beta1.GroupVersion.WithKind(v1beta1.ElasticTrainingJobKind),
		v1beta1.GroupVersion.WithKind(v1beta1.MergeJobKind))
	for _, kind := range kinds {
		if _, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			f.MissingKinds = append(f.MissingKinds, fmt.Sprintf("%s (%s)", kind.Kind, kind.GroupVersion()))
		} else if err != nil {
			return f, fmt.Errorf("ask whether %s is served: %w", kind.Kind, err)
		}
	}
	for _, gather := range []func(context.Context, client.Client, *Facts) error{
		gatherVolcano, gatherHyperNodes, gatherScheduler, gatherQueues, gatherClasses, gatherWebhooks, gatherOwnWebhooks,
		gatherOperator, gatherDenied,
		gatherGuards, gatherClaim, gatherInstallation, gatherDefinitions, gatherCertificates, gatherServices,
	} {
		if err := gather(ctx, c, &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

func gatherVolcano(ctx context.Context, c client.Client, f *Facts) error {
	conf := &corev1.ConfigMap{}
	if err := c.Get(ctx, gang.SchedulerConfigMap, conf); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read ConfigMap %s: %w", gang.SchedulerConfigMap, err)
	}
	f.SchedulerObstacles, f.EvictsForGangs = gang.ExamineSchedulerConf(conf.Data), gang.EvictsForGangs(conf.Data)
	f.PlacesByTopology = gang.PlacesByTopology(conf.Data)
	return nil
}

func gatherQueues(ctx context.Context, c client.Client, f *Facts) error {
	queues := gang.NewQueueList()
	if err := c.List(ctx, queues); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("list Queues: %w", err)
	}
	for _, q := range gang.AllQueueLimits(queues) {
		f.Queues[q.Name] = q.State
	}
	return nil
}

func gatherClasses(ctx context.Context, c client.Client, f *Facts) error {
	classes, err := priorityclass.Read(ctx, c)
	f.Classes = classes
	return err
}

func gatherWebhooks(ctx context.Context, c client.Client, f *Facts) error {
	webhooks := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	if err := c.List(ctx, webhooks); err != nil {
		return fmt.Errorf("list ValidatingWebhookConfigurations: %w", err)
	}
	for _, configuration := range webhooks.Items {
		for _, webhook := range configuration.Webhooks {
			for _, rule := range webhook.Rules {
				if strings.Join(rule.APIGroups, "") == gang.PodGroupKind.Group && strings.Join(rule.Resources, "") == "podgroups" {
					f.VolcanoWebhooks++
				}
			}
		}
	}
	return nil
}

// injectCA is the annotation by which cert-manager knows where to write its CA.
const injectCA = "cert-manager.io/inject-ca-from"

// ownWebhook ends the names of our webhooks. Their configurations have names of OLM's making where OLM installs them.
const ownWebhook = ".tideline.io"

// allConfigurations is how many webhook configurations an installation has.
const allConfigurations = 2

// gatherOwnWebhooks reads whether the API server knows our webhooks, whom it trusts to be them, and in which namespace they are.
func gatherOwnWebhooks(ctx context.Context, c client.Client, f *Facts) error {
	mutating := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	if err := c.List(ctx, mutating); err != nil {
		return fmt.Errorf("list MutatingWebhookConfigurations: %w", err)
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	if err := c.List(ctx, validating); err != nil {
		return fmt.Errorf("list ValidatingWebhookConfigurations: %w", err)
	}
	missing := map[string]bool{webhook.MutatingConfiguration: true, webhook.ValidatingConfiguration: true}
	see := func(installed string, o client.Object, called string, config admissionregistrationv1.WebhookClientConfig) {
		if !strings.HasSuffix(called, ownWebhook) {
			return
		}
		delete(missing, installed)
		if config.Service != nil {
			f.Namespace = config.Service.Namespace
		}
		f.OthersCertificate = f.OthersCertificate || o.GetName() != installed || o.GetAnnotations()[injectCA] != ""
		if f.authorities == nil {
			f.authorities = map[string][]byte{}
		}
		f.authorities[o.GetName()] = config.CABundle
		if len(config.CABundle) == 0 && !slices.Contains(f.UntrustedWebhooks, o.GetName()) {
			f.UntrustedWebhooks = append(f.UntrustedWebhooks, o.GetName())
		}
	}
	for _, o := range mutating.Items {
		for _, w := range o.Webhooks {
			see(webhook.MutatingConfiguration, &o, w.Name, w.ClientConfig)
		}
	}
	for _, o := range validating.Items {
		for _, w := range o.Webhooks {
			see(webhook.ValidatingConfiguration, &o, w.Name, w.ClientConfig)
		}
	}
	f.MissingWebhooks = slices.Sorted(maps.Keys(missing))
	return nil
}

// gatherDenied asks for every right of the operator's roles whether its ServiceAccount has it. Those in its own namespace are for
// the certificate that it makes, and not installed where cert-manager does.
func gatherDenied(ctx context.Context, c client.Client, f *Facts) error {
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(rbac.Roles), 4096); ; {
		role := &rbacv1.Role{} // a ClusterRole has the same fields and no namespace
		if err := decoder.Decode(role); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the operator's roles: %w", err)
		}
		for _, rule := range role.Rules {
			if f.OthersCertificate && aboutCertificates(role, rule) {
				continue
			}
			namespace := role.Namespace
			if namespace != "" {
				namespace = f.Namespace
			}
			if err := gatherDeniedBy(ctx, c, namespace, rule, f); err != nil {
				return err
			}
		}
	}
}

// aboutCertificates holds for rights that the operator needs only where it keeps the certificate of its webhooks itself: on their
// configurations, and on Secrets in its own namespace. Those that MergeJobs name it reads everywhere.
func aboutCertificates(role *rbacv1.Role, rule rbacv1.PolicyRule) bool {
	onConfigurations := slices.ContainsFunc(rule.Resources, func(r string) bool {
		return strings.HasSuffix(r, "webhookconfigurations")
	})
	return onConfigurations ||
		role.Namespace != "" && slices.Contains(rule.Resources, "secrets")
}

// gatherDeniedBy asks for the rights of one rule, in a namespace, or in all for none.
func gatherDeniedBy(ctx context.Context, c client.Client, namespace string, rule rbacv1.PolicyRule, f *Facts) error {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			ask := asAccount(c, f.Namespace)
			if f.Local {
				ask = asYourself(c)
			}
			denied, err := deniedVerbs(ctx, ask, namespace, group, resource, rule)
			if err != nil {
				return err
			}
			if len(denied) > 0 {
				f.Denied = append(f.Denied, strings.Join(denied, "/")+" "+strings.Trim(resource+"."+group, "."))
			}
		}
	}
	return nil
}

// asks tells whether a request is allowed.
type asks func(context.Context, *authorizationv1.ResourceAttributes) (bool, error)

// asAccount asks for the operator's account in namespace home.
func asAccount(c client.Client, home string) asks {
	return func(ctx context.Context, to *authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + home + ":" + rbac.ServiceAccount,
			Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + home, "system:authenticated"},
			ResourceAttributes: to,
		}}
		err := c.Create(ctx, review)
		return review.Status.Allowed, err
	}
}

// asYourself asks for the user of the kubeconfig.
func asYourself(c client.Client) asks {
	return func(ctx context.Context, to *authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: to}}
		err := c.Create(ctx, review)
		return review.Status.Allowed, err
	}
}

// deniedVerbs asks for the verbs of one rule on one resource.
func deniedVerbs(ctx context.Context, ask asks, namespace, group, resource string, rule rbacv1.PolicyRule) ([]string, error) {
	resource, subresource, _ := strings.Cut(resource, "/")
	name := strings.Join(rule.ResourceNames, "")
	var denied []string
	for _, verb := range rule.Verbs {
		allowed, err := ask(ctx, &authorizationv1.ResourceAttributes{
			Namespace: namespace, Group: group, Resource: resource, Subresource: subresource, Verb: verb, Name: name,
		})
		if err != nil {
			return nil, fmt.Errorf("ask for the operator's rights: %w", err)
		}
		if !allowed {
			denied = append(denied, verb)
		}
	}
	return denied, nil
}
