# The operator as a static program without a shell around it, run by nobody in particular.
FROM golang:1.26 AS build
WORKDIR /src
# Modules first: they change less often than code.
COPY go.mod go.sum ./
RUN go mod download
COPY main.go ./
COPY api api
COPY controllers controllers
COPY internal internal
# The CRDs and the role are part of the program, which holds objects to their rules and tells what rights it lacks.
COPY config/crd config/crd
COPY config/rbac config/rbac
ARG VERSION=unknown
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=$VERSION" -o /tideline .

FROM gcr.io/distroless/static:nonroot
COPY --from=build /tideline /tideline
USER 65532:65532
ENTRYPOINT ["/tideline"]
