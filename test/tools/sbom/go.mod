module github.com/tideline-io/tideline/test/tools/sbom

go 1.26.0

require github.com/CycloneDX/cyclonedx-go v0.10.0
