# Two stages: the compiler and its packages stay behind; what runs is Node, the compiled files and the
# few packages of `dependencies`, as a numeric non-root user, on a root that may be read-only.
FROM docker.io/library/node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc tsconfig.json ./
RUN npm ci --ignore-scripts
COPY src ./src
RUN npm run build && npm prune --omit=dev --ignore-scripts && mkdir state

FROM gcr.io/distroless/nodejs24-debian12:nonroot
WORKDIR /app
ENV NODE_ENV=production
COPY --from=build /app/package.json ./package.json
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
# The console shows it.
COPY docs/guides/reviewing-drift.md ./docs/guides/reviewing-drift.md
# `init` and `add` propose them.
COPY policies/library ./policies/library
# A new volume takes over this folder's owner, so that the audit file can be written there.
COPY --from=build --chown=65532:65532 /app/state /var/lib/sallyport
USER 65532:65532
EXPOSE 8080 9464 9090
# No shell in this image: the check is a command of the program itself, which reads the gateway file that is served.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 \
  CMD ["/nodejs/bin/node", "/app/dist/main.js", "healthcheck"]
ENTRYPOINT ["/nodejs/bin/node", "/app/dist/main.js"]
CMD ["serve", "-c", "/etc/sallyport/config/gateway.yaml"]
