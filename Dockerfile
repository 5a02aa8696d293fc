# The server in a container. For how to run it, see docs/server-in-a-container.md. Works with both builders of Docker.
ARG BUILD_IMAGE=node:26-bookworm-slim
ARG BASE_IMAGE=debian:bookworm-slim

# Provides Node, the dependencies and the built dashboard. For builders without access to a registry, BUILD_IMAGE can be an image that
# already has the dependencies and the dashboard in /skep.
FROM ${BUILD_IMAGE} AS build
ARG NPM_CONFIG_REGISTRY
WORKDIR /skep
COPY package.json package-lock.json build.ts ./
COPY src src
RUN set -e; test -d node_modules || { \
      npm ci --ignore-scripts --no-audit --no-fund; \
      node build.ts dashboard; \
      npm prune --omit=dev --ignore-scripts --no-audit --no-fund; \
    }

FROM ${BASE_IMAGE}
ARG PACKAGES=
# Installs the missing packages and those in PACKAGES. Creates the user, the data folder and the folder for local repositories.
RUN set -eu; \
    missing="$PACKAGES"; \
    command -v git >/dev/null || missing="$missing git"; \
    test -s /etc/ssl/certs/ca-certificates.crt || missing="$missing ca-certificates"; \
    ldconfig -p | grep -q libatomic.so.1 || missing="$missing libatomic1"; \
    if [ -n "$missing" ]; then \
      apt-get update; \
      apt-get install --yes --no-install-recommends $missing; \
      rm -rf /var/lib/apt/lists/*; \
    fi; \
    useradd --system --uid 10001 --home-dir /var/lib/skep --shell /usr/sbin/nologin skep; \
    install --directory --owner=skep --group=skep --mode=700 /var/lib/skep; \
    install --directory /srv/git; \
    printf '#!/bin/sh\nexec node /skep/src/composition/executable/main.ts "$@"\n' >/usr/local/bin/skep; \
    chmod 755 /usr/local/bin/skep
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /skep/node_modules /skep/node_modules
COPY --from=build /skep/dist /skep/dist
COPY package.json LICENSE /skep/
COPY src /skep/src

USER skep
WORKDIR /srv/git
ENV NODE_ENV=production \
    HOME=/var/lib/skep \
    SKEP_HOST=0.0.0.0 \
    SKEP_DATA_DIR=/var/lib/skep \
    SKEP_LOCAL_GIT_ROOT=/srv/git \
    SKEP_SANDBOX_RUNTIME=docker
VOLUME /var/lib/skep
EXPOSE 3000 3001
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s CMD ["skep", "health"]
ENTRYPOINT ["skep"]
CMD ["serve"]
