# The trainer image. Layers from what changes seldom to what changes often, so that a change of our code ships kilobytes.
# Built by playbooks/launch.yml on the control node; by hand, from the root of the clone:
#   docker build -f docker/trainer.Dockerfile -t gradferry/trainer .            (GPU: PyPI's torch brings its CUDA libraries,
#                                                                               so a "base" image is enough below them)
#   ... --build-arg BASE=debian:bookworm-slim --build-arg TORCH_INDEX=...       (CPU)
#   ... --build-arg WHEELS=IMAGE       (an image with a folder /wheels, pip's among them: the build needs no index)
ARG BASE=nvidia/cuda:13.0.1-base-ubuntu24.04
ARG WHEELS=no-wheels

FROM ${BASE} AS base
# tini as PID 1: a bare python ignores SIGTERM until it has set a handler, and import and rendezvous take seconds.
RUN set -e; \
    if ! command -v python3 >/dev/null || ! command -v tini >/dev/null; then \
      apt-get update; \
      DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 tini ca-certificates; \
      rm -rf /var/lib/apt/lists/* /var/cache/apt/*; \
    fi; \
    groupadd --gid 10001 gradferry; \
    useradd --uid 10001 --gid 10001 --home-dir /var/lib/gradferry --no-create-home --shell /usr/sbin/nologin gradferry

FROM base AS no-wheels
RUN mkdir /wheels

FROM ${WHEELS} AS wheels

FROM base AS deps
ARG TORCH_INDEX=
ARG PIP_INDEX_URL=
COPY --from=wheels /wheels /wheels
COPY constraints.txt requirements.txt docker/install-deps.sh /build/
RUN sh /build/install-deps.sh

FROM base AS code
COPY docker/commands /layer/opt/gradferry/bin
COPY trainer /layer/opt/gradferry/trainer
# Without .pyc every start compiles again: the root is read-only. Fixed times: equal content is an equal layer.
RUN chmod 0755 /layer/opt/gradferry/bin/* \
 && python3 -m compileall -q --invalidation-mode unchecked-hash -s /layer /layer/opt/gradferry/trainer \
 && find /layer -exec touch -h -d @1 {} +

FROM base AS trainer
# One layer each: a new version of a small package does not ship torch again.
COPY --from=deps /layers/cuda/ /
COPY --from=deps /layers/torch/ /
COPY --from=deps /layers/rest/ /
ENV PATH=/opt/gradferry/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/opt/gradferry:/opt/site \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp
USER 10001:10001
WORKDIR /var/lib/gradferry
ENTRYPOINT ["tini", "--"]
CMD ["gradferry", "--help"]
COPY --from=code /layer/ /
ARG CONTENT=unknown
LABEL io.gradferry.content=${CONTENT}
