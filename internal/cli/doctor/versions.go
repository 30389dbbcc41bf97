package doctor

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tideline-io/tideline/config/crd"
	"github.com/tideline-io/tideline/internal/cli/storage"
	"github.com/tideline-io/tideline/internal/platform/moment"
	"github.com/tideline-io/tideline/internal/webhook"
)

// definitions are the CustomResourceDefinitions of this program, in YAML.
var definitions = [][]byte{crd.ElasticTrainingJob, crd.MergeJob, crd.ResourceQuotaProfile, crd.CostReport}

// gatherDefinitions compares the installed kinds with those of this program. One that is not installed is told of elsewhere.
func gatherDefinitions(ctx context.Context, c client.Client, f *Facts) error {
	for _, content := range definitions {
		ours := map[string]any{}
		if err := yaml.Unmarshal(content, &ours); err != nil {
			return fmt.Errorf("read a CustomResourceDefinition of this program: %w", err)
		}
		name, _, _ := unstructured.NestedString(ours, "metadata", "name")
		installed := &unstructured.Unstructured{}
		installed.SetGroupVersionKind(definitionKind)
		err := c.Get(ctx, client.ObjectKey{Name: name}, installed)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
		}
		_, former, err := storage.StoredVersions(installed)
		if err != nil {
			return err
		}
		if len(former) > 0 {
			f.StoredBefore = append(f.StoredBefore, name)
		}
		// As JSON, in which numbers are of one type.
		content, err := json.Marshal(installed.Object)
		if err != nil {
			return fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
		}
		theirs := map[string]any{}
		if err := json.Unmarshal(content, &theirs); err != nil {
			return fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
		}
		if !reflect.DeepEqual(schemasOf(ours), schemasOf(theirs)) {
			f.OtherDefinitions = append(f.OtherDefinitions, name)
		}
	}
	return nil
}

// definitionKind is that of kinds.
var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// schemasOf are the fields and rules of a kind, by version. The rest the API server completes.
func schemasOf(definition map[string]any) map[string]any {
	schemas := map[string]any{}
	spec, _ := definition["spec"].(map[string]any)
	all, _ := spec["versions"].([]any)
	for _, each := range all {
		if version, ok := each.(map[string]any); ok {
			schemas[fmt.Sprint(version["name"])] = version["schema"]
		}
	}
	return schemas
}

// versions judges whether the installed kinds are those of this program.
func versions(f Facts) []Finding {
	var findings []Finding
	if len(f.StoredBefore) > 0 {
		findings = append(findings, Finding{
			Level: Warn,
			What: fmt.Sprintf("Objects of %s may be stored in an earlier version of the API, which a later release will not have.",
				strings.Join(f.StoredBefore, ", ")),
			Do:  "Have them stored in the current version:",
			Run: "tideline migrate-storage",
		})
	}
	if len(f.OtherDefinitions) == 0 {
		return findings
	}
	return append(findings, Finding{
		Level: Warn,
		What: fmt.Sprintf("What is installed is of another version than this program: other fields or rules have %s.",
			strings.Join(f.OtherDefinitions, ", ")),
		Do: "If this program is the newer one, and the operator is, too, install its kinds:",
		// Too large for the annotation that other ways of applying write.
		Run: f.Installed.helm("", "kubectl apply --server-side --force-conflicts -k config/crd"),
	})
}

// gatherCertificates reads until when the API server trusts our webhooks, and the certificate that the operator keeps. It runs
// after gatherOwnWebhooks, which finds the CAs.
func gatherCertificates(ctx context.Context, c client.Client, f *Facts) error {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: f.Namespace, Name: webhook.CertificatesName}
	if err := c.Get(ctx, key, secret); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("read Secret %s: %w", key, err)
	}
	served := secret.Data[corev1.TLSCertKey]
	if f.OthersCertificate {
		served = nil // which is elsewhere
	}
	f.Certificate = certificateProblem(f.authorities, served, time.Now())
	return nil
}

// certificateProblem says what keeps the API server from trusting a webhook by its CAs, which are by the name of what has them;
// it is empty if nothing does. What is served may be unknown, and a CA missing, which is found elsewhere.
func certificateProblem(authorities map[string][]byte, served []byte, now time.Time) string {
	for _, name := range slices.Sorted(maps.Keys(authorities)) {
		ca := parseCertificates(authorities[name])
		if len(authorities[name]) == 0 {
			continue
		}
		pool := x509.NewCertPool()
		var ends time.Time
		for _, certificate := range ca {
			pool.AddCert(certificate)
			ends = moment.LaterOf(ends, certificate.NotAfter)
		}
		switch own := parseCertificates(served); {
		case len(ca) == 0:
			return "the CA in " + name + " is no certificate"
		case now.After(ends):
			return fmt.Sprintf("the CA in %s ended on %s", name, ends.UTC().Format(time.DateOnly))
		case len(own) == 0:
		case now.After(own[0].NotAfter):
			return fmt.Sprintf("the certificate in Secret %s ended on %s", webhook.CertificatesName,
				own[0].NotAfter.UTC().Format(time.DateOnly))
		default:
			if _, err := own[0].Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now}); err != nil {
				return fmt.Sprintf("the certificate in Secret %s is not of the CA in %s", webhook.CertificatesName, name)
			}
		}
	}
	return ""
}

// parseCertificates reads PEM; what is no certificate is left out.
func parseCertificates(content []byte) (all []*x509.Certificate) {
	for block, rest := pem.Decode(bytes.TrimSpace(content)); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, certificate)
		}
	}
	return all
}

// certificates judges the certificate of our webhooks; nothing is to be said of one that holds.
func certificates(f Facts) []Finding {
	if f.Certificate == "" {
		return nil
	}
	finding := Finding{
		What: "No job can be created, because the API server does not trust the webhooks: " + f.Certificate + ".",
		Do:   "Have the operator make other ones, which it does within a second:",
		Run:  fmt.Sprintf("kubectl delete secret --namespace %s %s", f.Namespace, webhook.CertificatesName),
	}
	if f.OthersCertificate {
		finding.Do = "Cert-manager or OLM keeps it: see why it was not renewed."
		finding.Run = fmt.Sprintf("kubectl describe --namespace %s certificates,secrets,deployments", f.Namespace)
	}
	return []Finding{finding}
}
