// Where the tests read the CustomResourceDefinitions of others. Nothing is built of it, so `go mod tidy` would empty it: to take
// a newer version, change the number here and run `go mod download` in this folder.
module github.com/tideline-io/tideline/test/project/schemas

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
