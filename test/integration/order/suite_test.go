// Package order shows what follows from what was used before, on a real API server and a real Volcano: who goes first while room
// is short, and what the ledger has. Each container has a cluster of its own, because its operator starts with a ledger.
package order

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/suite"
)

// several is a few of Volcano's cycles.
const several = 3 * time.Second

func TestOrder(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "Order")
}

// team is a scenario in a namespace of a team.
type team struct{ *testutil.Scenario }

// job is one of one GPU a worker, on whatever node, that grows again after a second.
func (t team) job(name string, minimum, maximum int32) *testutil.JobBuilder {
	return testutil.Job(name).In(t.Namespace).GPUs(1).Range(minimum, maximum).Cooldown(time.Second)
}
