// Package quickstart does what the documentation tells a new user to do, on a bare cluster with Volcano as it is shipped: it
// runs the commands of README.md, docs/quickstart.md and docs/operations.md as they stand there, and applies all YAML that pages
// and samples show. It runs by `make test-install`.
package quickstart

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/test/testutil/suite"
)

func TestQuickStart(t *testing.T) {
	RegisterFailHandler(Fail)
	suite.Defaults()
	RunSpecs(t, "By the book")
}
