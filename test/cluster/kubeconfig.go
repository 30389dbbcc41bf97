package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigHeader marks the kubeconfigs that may be replaced by another one of
// ours, and by nothing else.
const kubeconfigHeader = "# Written by Tideline's local cluster; it is replaced and removed with it.\n"

// adminGroup passes every authorization check.
const adminGroup = "system:masters"

// kubeconfigFor returns a kubeconfig by which a user connects with a client
// certificate.
func (c *Cluster) kubeconfigFor(user string, groups ...string) ([]byte, error) {
	cert, key, err := c.authority.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return c.kubeconfig(user, &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

// WriteKubeconfig writes a kubeconfig for a program of the cluster, an admin
// called user, to the state folder and returns its path.
func (c *Cluster) WriteKubeconfig(user string) (string, error) {
	content, err := c.kubeconfigFor(user, adminGroup)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.state.path, user[strings.LastIndexByte(user, ':')+1:]+".kubeconfig")
	return path, writeFile(path, content, 0o600)
}

func (c *Cluster) kubeconfig(user string, auth *api.AuthInfo) ([]byte, error) {
	const name = "tideline-local"
	content, err := clientcmd.Write(api.Config{
		Clusters: map[string]*api.Cluster{name: {
			Server:                   "https://" + Address(c.apiPort),
			CertificateAuthorityData: c.authority.pem,
		}},
		AuthInfos:      map[string]*api.AuthInfo{user: auth},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	})
	return append([]byte(kubeconfigHeader), content...), err
}

// checkKubeconfigPath refuses a path where a file is that is not ours.
func checkKubeconfigPath(path string) error {
	content, err := readIfExists(path)
	if err != nil || len(content) == 0 || bytes.HasPrefix(content, []byte(kubeconfigHeader)) {
		return err
	}
	return fmt.Errorf("%s exists and was not written by a local cluster: "+
		"choose another path for the kubeconfig, or remove the file", path)
}

// writeAdminKubeconfig writes the admin's kubeconfig to the state folder and to
// [Options.Kubeconfig], and sets c.config.
func (c *Cluster) writeAdminKubeconfig() error {
	content, err := c.kubeconfigFor("admin", adminGroup)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(c.state.path, kubeconfigFile), content, 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.KubeconfigPath()), 0o755); err != nil {
		return err
	}
	if err := writeFile(c.KubeconfigPath(), content, 0o600); err != nil {
		return err
	}
	c.config, err = clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		return err
	}
	c.config.QPS = -1 // the API server limits its clients itself
	return nil
}

// RESTConfig returns a copy of the admin's client configuration, without a
// client-side rate limit.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// KubeconfigPath returns the absolute path of the admin's kubeconfig.
func (c *Cluster) KubeconfigPath() string { return c.state.owner.Kubeconfig }

// KubeconfigFor writes a kubeconfig with which a program acts as a service
// account, so with its real role and subject to priority and fairness, which
// admins are exempt from. The service account must exist; the token is valid
// for a year.
func (c *Cluster) KubeconfigFor(ctx context.Context, namespace, serviceAccount, path string) error {
	seconds := int64(validity / time.Second)
	request, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}},
		metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("requesting a token for service account %s/%s: %w", namespace, serviceAccount, err)
	}
	content, err := c.kubeconfig(serviceAccount, &api.AuthInfo{Token: request.Status.Token})
	if err != nil {
		return err
	}
	return writeFile(path, content, 0o600)
}
