# The operator as a static program without a shell around it, run by nobody in particular, for linux/amd64 and linux/arm64:
# make docker-build, make docker-buildx. The same commit makes the same program, which test/image holds it to.

# The exact version of Go, because another makes another program. By tag: the program contains nothing else of this image.
ARG GO_VERSION=1.26.8
# By tag: its CA certificates should be of today. Who needs the same image for ever gives it by digest.
ARG BASE=gcr.io/distroless/static:nonroot

# Compiles on the machine's own platform for the image's, so that no emulator is needed.
FROM --platform=$BUILDPLATFORM golang:$GO_VERSION AS build
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
# What `tideline version` says: by the Makefile, from git.
ARG VERSION=unknown
ARG COMMIT=unknown
ARG DATE=unknown
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOTOOLCHAIN=local GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X main.version=$VERSION -X main.commit=$COMMIT -X main.date=$DATE" -o /out/tideline .

FROM $BASE
COPY --from=build /out/tideline /tideline
USER 65532:65532
ENTRYPOINT ["/tideline"]
