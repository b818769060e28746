# A registry for the control node where registry:2 cannot be pulled: the distribution's package, with that image's settings
# (Debian's own ask for a password). It is published on the loopback only: see docker/push.py.
ARG BASE
FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends docker-registry ca-certificates \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && printf 'version: 0.1\nstorage: {filesystem: {rootdirectory: /var/lib/registry}}\nhttp: {addr: ":5000"}\n' \
      >/etc/docker/registry/config.yml
ENTRYPOINT ["docker-registry", "serve"]
CMD ["/etc/docker/registry/config.yml"]
