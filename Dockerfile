FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=v0.0.0
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/go/cache \
    GOCACHE=/go/cache CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath \
    -ldflags="-s -w -X warmpool.sh/webhook/version.number=$VERSION" -o /warmpool ./cmd/warmpool

FROM gcr.io/distroless/static:nonroot
COPY --from=build /warmpool /warmpool
# runAsNonRoot accepts numeric users only.
USER 65532:65532
ENTRYPOINT ["/warmpool"]
