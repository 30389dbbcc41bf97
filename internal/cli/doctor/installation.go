package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// Names in the operator's Deployment.
const (
	configurationVolume, configurationKey = "configuration", "configuration.yaml"
	ledgerVolume                          = "data"
	managerContainer                      = "manager"
)

// Installation is what the operator's Deployment says about how it was installed.
type Installation struct {
	// Image is that of the operator's container.
	Image string
	// Release is Helm's, as NAMESPACE/NAME; empty where Helm did not install it. OLM holds where OLM did.
	Release string
	OLM     bool
	// ConfigMap has the operator's configuration, and Configuration is what it says; nil where it cannot be read.
	ConfigMap     string
	Configuration *config.Configuration
	// Args are the operator's flags, which go before the file.
	Args []string
	// Volatile holds where the folder of the ledger's file is lost with the pod.
	Volatile bool
	// Unpulled are pods whose image cannot be had, each with the reason.
	Unpulled []string
	// ReviewsTokens holds where the operator's account may ask whose a token is.
	ReviewsTokens bool
}

// gatherInstallation reads the operator's Deployment, its configuration and its pods. It runs after gatherOperator.
func gatherInstallation(ctx context.Context, c client.Client, f *Facts) error {
	deployment := &appsv1.Deployment{}
	if err := c.Get(ctx, f.deployment(), deployment); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read Deployment %s: %w", f.deployment(), err)
	}
	in := &Installation{OLM: deployment.Labels["olm.owner"] != ""}
	if name := deployment.Annotations["meta.helm.sh/release-name"]; name != "" {
		in.Release = deployment.Annotations["meta.helm.sh/release-namespace"] + "/" + name
	}
	template := &deployment.Spec.Template.Spec
	for i := range template.Containers {
		if container := &template.Containers[i]; container.Name == managerContainer {
			in.Image, in.Args = container.Image, container.Args
		}
	}
	in.Volatile = true
	for i := range template.Volumes {
		switch v := &template.Volumes[i]; {
		case v.Name == configurationVolume && v.ConfigMap != nil:
			in.ConfigMap = v.ConfigMap.Name
		case v.Name == ledgerVolume:
			in.Volatile = v.EmptyDir != nil
		}
	}
	f.Installed = in
	for _, gather := range []func(context.Context, client.Client, *Facts) error{
		gatherConfiguration, gatherUnpulled, gatherReviews,
	} {
		if err := gather(ctx, c, f); err != nil {
			return err
		}
	}
	return nil
}

// gatherConfiguration reads the configuration of the installed operator. One that this program does not understand is left out.
func gatherConfiguration(ctx context.Context, c client.Client, f *Facts) error {
	file, key := &corev1.ConfigMap{}, client.ObjectKey{Namespace: f.Namespace, Name: f.Installed.ConfigMap}
	if key.Name == "" {
		return nil
	}
	if err := c.Get(ctx, key, file); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	if cfg, err := config.Load(key.String(), []byte(file.Data[configurationKey])); err == nil {
		f.Installed.Configuration = cfg
	}
	return nil
}

// unpulled are the reasons of a container that waits for its image in vain.
var unpulled = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}

func gatherUnpulled(ctx context.Context, c client.Client, f *Facts) error {
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(f.Namespace), client.MatchingLabels{
		"app.kubernetes.io/name": "tideline", "app.kubernetes.io/component": "manager",
	}); err != nil {
		return fmt.Errorf("list the operator's pods: %w", err)
	}
	for i := range pods.Items {
		for _, container := range pods.Items[i].Status.ContainerStatuses {
			if w := container.State.Waiting; w != nil && slices.Contains(unpulled, w.Reason) {
				f.Installed.Unpulled = append(f.Installed.Unpulled, pods.Items[i].Name+" ("+w.Reason+")")
			}
		}
	}
	return nil
}

func gatherReviews(ctx context.Context, c client.Client, f *Facts) (err error) {
	f.Installed.ReviewsTokens, err = asAccount(c, f.Namespace)(ctx, &authorizationv1.ResourceAttributes{
		Group: "authentication.k8s.io", Resource: "tokenreviews", Verb: "create",
	})
	if err != nil {
		return fmt.Errorf("ask for the operator's rights: %w", err)
	}
	return nil
}

// helm is the command that changes values of a release of Helm; other is what does it elsewhere.
func (in *Installation) helm(set, other string) string {
	if in == nil || in.Release == "" {
		return other
	}
	namespace, name, _ := strings.Cut(in.Release, "/")
	return strings.TrimSpace(fmt.Sprintf("helm upgrade %s config/chart --namespace %s --reuse-values %s", name, namespace, set))
}

// by says who installed it.
func (in *Installation) by() string {
	switch {
	case in.Release != "":
		return "by Helm (release " + in.Release + ")"
	case in.OLM:
		return "by OLM"
	}
	return "by kubectl"
}

// flag is the value of one of the operator's flags; a switch without one is true.
func (in *Installation) flag(name string) (value string, given bool) {
	for _, arg := range in.Args {
		key, v, valued := strings.Cut(arg, "=")
		if strings.TrimLeft(key, "-") == name {
			value, given = v, true
			if !valued {
				value = "true"
			}
		}
	}
	return value, given
}

// installation judges the operator's image, its console and where its ledger is, of an operator that has a Deployment.
func installation(f Facts, cfg *config.Configuration) []Finding {
	if f.Installed == nil {
		return nil
	}
	return slices.Concat([]Finding{image(f)}, console(f, cfg), ledgers(f, cfg))
}

func image(f Facts) Finding {
	in := f.Installed
	if len(in.Unpulled) == 0 {
		return Finding{Level: OK, What: fmt.Sprintf("The operator was installed %s, and its image is %s.", in.by(), in.Image)}
	}
	return Finding{
		What: fmt.Sprintf("The operator's image %s cannot be had: %s.", in.Image, strings.Join(in.Unpulled, ", ")),
		Do:   "Push it to where nodes can pull it from (make docker-build IMG=REGISTRY/tideline:TAG), and name it:",
		Run: in.helm("--set image.repository=REGISTRY/tideline,image.tag=TAG", fmt.Sprintf("kubectl set image --namespace %s "+
			"deployment/%s %s=REGISTRY/tideline:TAG", f.Namespace, f.deployment().Name, managerContainer)),
	}
}

// console judges whether a console that is on is served, and knows its readers. One that is off is not spoken of.
func console(f Facts, cfg *config.Configuration) []Finding {
	in := f.Installed
	on := cfg.Console.Enabled
	if value, given := in.flag("console"); given {
		on = value == "true"
	}
	address, secure := cfg.Metrics.BindAddress, cfg.Metrics.Secure
	if value, given := in.flag("metrics-bind-address"); given {
		address = value
	}
	if value, given := in.flag("metrics-secure"); given {
		secure = value == "true"
	}
	switch {
	case !on:
		return nil
	case address == "0" || !secure:
		return []Finding{{
			What: "The console is on, and there is no server of metrics by HTTPS, which serves it: the operator does not start.",
			Do:   "Have metrics served by HTTPS, as component monitoring does, or leave the console out:",
			Run:  in.helm("--set components.monitoring=true", in.addFlags(f, "--metrics-bind-address=:8443", "--metrics-secure")),
		}}
	case !in.ReviewsTokens:
		return []Finding{{
			What: "The console is on, and the operator may not create tokenreviews, so that users cannot sign in.",
			Do:   "Let its account review tokens, as component monitoring does:",
			Run: in.helm("--set components.monitoring=true", fmt.Sprintf("kubectl create clusterrolebinding tideline-reviews-tokens "+
				"--clusterrole=system:auth-delegator --serviceaccount=%s:tideline-controller-manager", f.Namespace)),
		}}
	}
	return []Finding{{Level: OK, What: "The console is on, and the operator may ask whose the tokens of its readers are."}}
}

// addFlags is the command that adds flags to the operator.
func (*Installation) addFlags(f Facts, flags ...string) string {
	var patches []string
	for _, flag := range flags {
		patches = append(patches, fmt.Sprintf(`{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":%q}`, flag))
	}
	return fmt.Sprintf("kubectl patch deployment --namespace %s %s --type=json -p '[%s]'", f.Namespace, f.deployment().Name,
		strings.Join(patches, ","))
}

// ledgers judges where the ledger is kept; claims judges the claim that it is kept on.
func ledgers(f Facts, cfg *config.Configuration) []Finding {
	in := f.Installed
	switch {
	case !cfg.Ledger.IsConfigured() || f.ClaimUnbound:
		return nil
	case cfg.Ledger.File == "":
		return []Finding{{Level: OK, What: "The ledger is in PostgreSQL."}}
	case !in.Volatile:
		return []Finding{{Level: OK, What: "The ledger outlasts the operator's pod."}}
	}
	return []Finding{{
		Level: Warn,
		What: "The ledger is in the operator's pod and is lost with it: budgets, reports and `tideline why --at` begin anew at each " +
			"rollout.",
		Do: "Keep it on a claim, where the cluster has storage:",
		Run: in.helm("--set ledger.claim.size=10Gi", fmt.Sprintf("kubectl apply --namespace %[1]s -f config/manager/claim.yaml && "+
			"kubectl patch deployment --namespace %[1]s %[2]s -p '{\"spec\":{\"template\":{\"spec\":{\"volumes\":[{\"name\":%[3]q,"+
			"\"emptyDir\":null,\"persistentVolumeClaim\":{\"claimName\":%[4]q}}]}}}}'", f.Namespace, f.deployment().Name, ledgerVolume,
			ledgerClaim)),
	}}
}

// configured is the configuration that counts: the one given, or that of the installed operator.
func configured(f Facts, given *config.Configuration) *config.Configuration {
	if given != nil {
		return given
	}
	if f.Installed != nil {
		return cmp.Or(f.Installed.Configuration, config.DefaultConfiguration())
	}
	return config.DefaultConfiguration()
}
