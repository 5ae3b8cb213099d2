# Both commands with a redis-server beside them: docker run --rm IMAGE bench --topology single,redlock
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN mkdir -p /out && CGO_ENABLED=0 go build -trimpath -o /out/ ./cmd/bench ./cmd/verify && .ci/notices /NOTICES

# The shim of the fault clock-jump is compiled where it is needed, hence the compiler.
FROM debian:bookworm-slim
RUN apt-get update && \
    RUNLEVEL=1 apt-get install -y --no-install-recommends redis-server gcc libc6-dev && \
    rm -rf /var/lib/apt/lists/* && \
    useradd --create-home hammerlock
COPY --from=build /out/ /usr/local/bin/
COPY LICENSE /usr/share/doc/hammerlock/
COPY --from=build /NOTICES /usr/share/doc/hammerlock/
USER hammerlock
WORKDIR /home/hammerlock
RUN mkdir results
VOLUME /home/hammerlock/results
CMD ["bench", "--topology", "single,redlock", "--duration", "5s"]
