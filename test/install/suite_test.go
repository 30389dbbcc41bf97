// Package install shows that what users install works as it says: two replicas of which one crashes, and another version of
// Tideline that is applied over the one before it, and back. Everything is rendered by kustomize and applied by kubectl, as users
// do it; only the operators are processes beside the cluster, which has no kubelets, with the arguments and files of their
// Deployment.
//
//	go tool ginkgo --procs=2 --race --randomize-all ./test/install
package install

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestInstall(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Installations")
}
