# The coordinator, and the auth proxy. What a coordinator needs from outside is a volume on /data, and nothing else may be
# writable but the folders of the secret that it shares with an auth proxy, and of the key-encryption key.
# The long-term version of Node, which `.ci/smoke-node.mjs` starts the build on; libsql has binaries for glibc on amd64 and arm64.
FROM node:24.21.0-bookworm-slim AS base
WORKDIR /app

# Install scripts stay off (docs/adr/0028); the npm of this image would not read `allowScripts`.
FROM base AS build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY nest-cli.json tsconfig.json tsconfig.build.json ./
COPY scripts/arguments.mjs scripts/build.mjs scripts/no-arguments.mjs ./scripts/
COPY README.md SECURITY.md CONTRIBUTING.md CHANGELOG.md ./
COPY docs ./docs
COPY src ./src
RUN npm run build

FROM base AS dependencies
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

FROM base
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 DATA_DIR=/data
# The lock file is what boot proofs measure the packages by.
COPY package.json package-lock.json LICENSE ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
# A new named volume takes owner and mode of the folder that it covers.
RUN install -d -o node -g node -m 0700 /data /proxy-secret /kek
# The user `node`, by number: a cluster that insists on non-root users cannot look up a name.
USER 1000:1000
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/ready`, { signal: AbortSignal.timeout(3000) }).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# The shell makes room for Node, which so gets the signals of the container.
CMD ["sh", "-c", "exec node $(node dist/cli/node-flags.js) dist/main.js"]
