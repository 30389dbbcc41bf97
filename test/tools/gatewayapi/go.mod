// The Gateway API's CustomResourceDefinitions, to which tests hold the HTTPRoutes that the operator makes. It is data: nothing is
// built. Renew it by: go -C test/tools/gatewayapi get sigs.k8s.io/gateway-api@latest
module github.com/tideline-io/tideline/test/tools/gatewayapi

go 1.26.0

require sigs.k8s.io/gateway-api v1.5.1
