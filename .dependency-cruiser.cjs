/** Who may import whom, by folder (docs/adr and the map in the README). A planted violation of each is a test. */
const only = (name, from, allowed) => ({
  name,
  severity: 'error',
  from: { path: from },
  to: { path: '^src/', pathNot: [from, ...allowed] },
});

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    only('domain-knows-nothing', '^src/domain/', []),
    {
      name: 'domain-is-pure',
      severity: 'error',
      comment: 'no Nest, no IO; xstate is used as a library of pure functions',
      from: { path: '^src/domain/' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'core'], pathNot: 'node_modules/xstate/' },
    },
    only('activities-know-the-domain', '^src/activities/', [
      '^src/domain/',
      '^src/schema/',
      '^src/stamps/keys\\.ts$',
      '^src/keyring/(addresses|curves|derivation)\\.ts$',
      '^src/transactions/',
      '^src/delivery/(templates|mail-layout)\\.ts$',
    ]),
    only('schema-knows-errors', '^src/schema/', ['^src/domain/errors\\.ts$']),
    only('stores-know-errors', '^src/event-store/', ['^src/domain/errors\\.ts$']),
    only('stamps-know-errors', '^src/stamps/', ['^src/domain/(errors|key-formats)\\.ts$']),
    only('keyring-knows-the-vault', '^src/keyring/', [
      '^src/domain/(errors|key-formats)\\.ts$',
      '^src/domain/organization/signing-keys\\.ts$',
      '^src/event-store/event-store\\.ts$',
      '^src/stamps/sign\\.ts$',
      '^src/vault/',
    ]),
    only('vault-knows-the-store', '^src/vault/', [
      '^src/domain/errors\\.ts$',
      '^src/event-store/(event-store|chain)\\.ts$',
    ]),
    only('delivery-knows-settings', '^src/delivery/', ['^src/config\\.ts$', '^src/domain/errors\\.ts$']),
    only('http-client-knows-nothing', '^src/http-client/', []),
    only('oidc-knows-json', '^src/oidc/', [
      '^src/domain/errors\\.ts$',
      '^src/http-client/',
      '^src/schema/strict-json\\.ts$',
    ]),
    only('webhooks-know-ports', '^src/webhooks/', [
      '^src/domain/',
      '^src/http-client/',
      '^src/coordinator/(ids|lease-term|ports)\\.ts$',
      '^src/event-store/(event-store|chain)\\.ts$',
      '^src/read-models/(database|webhooks)\\.ts$',
    ]),
    only('transactions-know-policy-values', '^src/transactions/', [
      '^src/domain/errors\\.ts$',
      '^src/domain/policy/types\\.ts$',
    ]),
    only('config-knows-keys', '^src/config\\.ts$', [
      '^src/domain/(errors|key-formats)\\.ts$',
      '^src/stamps/keys\\.ts$',
    ]),
    only('client-knows-the-wire', '^src/client/', ['^src/domain/activity/envelope\\.ts$', '^src/stamps/']),
    only('cli-knows-the-client', '^src/cli/', [
      '^src/client/',
      '^src/config\\.ts$',
      '^src/event-store/open-event-store\\.ts$',
      '^src/stamps/',
      '^src/vault/rotate-kek\\.ts$',
      '^src/webhooks/redeliver\\.ts$',
    ]),
    only('read-models-know-domain-and-store', '^src/read-models/', [
      '^src/domain/',
      '^src/schema/',
      '^src/event-store/(event-store|chain|stored-event|upcast)\\.ts$',
    ]),
    only('coordinator-knows-ports', '^src/coordinator/', [
      '^src/domain/',
      '^src/activities/',
      '^src/schema/',
      '^src/stamps/',
      '^src/event-store/(event-store|chain|upcast)\\.ts$',
      '^src/read-models/(database|define-query|runner)\\.ts$',
    ]),
    only('auth-proxy-knows-the-wire', '^src/auth-proxy/', [
      '^src/client/',
      '^src/config\\.ts$',
      '^src/domain/errors\\.ts$',
      '^src/schema/(fields|json-schema)\\.ts$',
      '^src/stamps/',
    ]),
    only('http-knows-doors', '^src/http/', [
      '^src/coordinator/(answers|auth-proxies|ports|registry|requests|run-query|submit-activity)\\.ts$',
      '^src/domain/errors\\.ts$',
      '^src/event-store/event-store\\.ts$',
      '^src/keyring/(installation-keys|oidc-issuer|webhook-key)\\.ts$',
      '^src/read-models/',
      '^src/schema/',
      '^src/stamps/',
      '^src/config\\.ts$',
    ]),
    {
      name: 'nest-at-the-edge',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: [
          '^src/(main|app\\.module)\\.ts$',
          '^src/http/',
          '^src/auth-proxy/(auth-proxy\\.module|(?:auth-proxy|proxy-health)\\.controller)\\.ts$',
          '^src/coordinator/(cast-vote|run-query|submit-activity)\\.ts$',
          '^src/stamps/stamp\\.guard\\.ts$',
        ],
      },
      to: { path: 'node_modules/@nestjs/' },
    },
    {
      name: 'nobody-imports-the-root',
      severity: 'error',
      from: { pathNot: '^src/(main|testing/.*)\\.ts$' },
      to: { path: '^src/(main|app\\.module)\\.ts$' },
    },
    {
      name: 'one-driver-for-sqlite',
      severity: 'error',
      from: { pathNot: '^src/(event-store/sqlite-worker|read-models/database)\\.ts$' },
      to: { path: 'node_modules/libsql/' },
    },
    {
      name: 'one-client-for-event-store-db',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/event-store/event-store-db\\.ts$' },
      to: { path: 'node_modules/@eventstore/' },
    },
    {
      name: 'no-test-code-in-the-product',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/testing/' },
      to: { path: '^(test|bench|src/testing)/' },
    },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
