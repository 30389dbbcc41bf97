// Package crd holds the CustomResourceDefinitions, so that the operator can hold objects to the very rules that the API
// server admits them by.
package crd

import _ "embed"

// ElasticTrainingJob is the CustomResourceDefinition of ElasticTrainingJob, in YAML.
//
//go:embed bases/tideline.io_elastictrainingjobs.yaml
var ElasticTrainingJob []byte

// MergeJob is the CustomResourceDefinition of MergeJob, in YAML.
//
//go:embed bases/tideline.io_mergejobs.yaml
var MergeJob []byte

// ResourceQuotaProfile is the CustomResourceDefinition of ResourceQuotaProfile, in YAML.
//
//go:embed bases/tideline.io_resourcequotaprofiles.yaml
var ResourceQuotaProfile []byte

// CostReport is the CustomResourceDefinition of CostReport, in YAML.
//
//go:embed bases/tideline.io_costreports.yaml
var CostReport []byte

// Names are the names of all of them.
var Names = []string{
	"elastictrainingjobs.tideline.io", "mergejobs.tideline.io", "resourcequotaprofiles.tideline.io", "costreports.tideline.io",
}
