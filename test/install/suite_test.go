// Package install shows that what users install works as it says: two replicas of which one crashes, and another version of
// Tideline that is applied over the one before it, and back. Everything is rendered by kustomize and applied by kubectl, as users
// do it; only the operators are processes beside the cluster, which has no kubelets, with the arguments and files of their
// Deployment.
//
//	go tool ginkgo --procs=2 --race --randomize-all ./test/install
package install

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil/suite"
	"github.com/tideline-io/tideline/test/testutil/upgrade"
)

func TestInstall(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Installations")
}

// programs is the folder of operators that the suite builds; empty but in the first process.
var programs string

// thisVersion is the one that is tested, previousVersion the one before it, and formerVersion has other names of fields.
var thisVersion, previousVersion, formerVersion version

// Operators are built before any spec begins: compilers would take processors from those that say how long something may take.
var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	var err error
	programs, err = os.MkdirTemp("", "tideline-programs-")
	Expect(err).NotTo(HaveOccurred(), "there is room for programs")
	said, err := json.Marshal([]version{
		build(ctx, programs), {upgrade.Previous(ctx, thisRoot)}, {upgrade.Former(ctx, thisRoot)},
	})
	Expect(err).NotTo(HaveOccurred(), "versions are text")
	return said
}, func(_ context.Context, said []byte) {
	var versions []version
	Expect(json.Unmarshal(said, &versions)).To(Succeed(), "the first process tells of the versions")
	thisVersion, previousVersion, formerVersion = versions[0], versions[1], versions[2]
}, NodeTimeout(15*time.Minute))

var _ = SynchronizedAfterSuite(func() {}, func() {
	Expect(os.RemoveAll(programs)).To(Succeed(), "nothing is left behind")
})
