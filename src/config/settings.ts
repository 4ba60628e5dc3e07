/** Every setting: name, default as shown in the reference, and what it does. */
export const settings = [
  ['HOST', '127.0.0.1', 'Address to listen on; `0.0.0.0` or `::` for all.'],
  ['PORT', '8080', 'Port to listen on; `0` lets the system choose a free one.'],
  ['DATA_DIR', './data', 'Folder for everything that the coordinator stores on disk.'],
  [
    'EVENT_STORE',
    'sqlite:',
    'Event store: `sqlite:` (a file in DATA_DIR), `memory:` (lost on exit), or `esdb://…` (an EventStoreDB).',
  ],
  [
    'KEK',
    '',
    'Key-encryption key that seals all secrets, 64 hex characters, followed by older keys, separated by commas. Replaces KEK_FILE.',
  ],
  ['KEK_FILE', '', 'File with the key-encryption key; if unset, `kek` in DATA_DIR, created on the first start.'],
  ['PUBLIC_URL', '', 'Public URL of this server; if unset, the listening address.'],
  ['INVITATION_URL', '', 'Page where people accept invitations; if unset, `/invitations/accept` of this server.'],
  ['APP', 'all', 'What this process serves: `api`, `proxy` (the auth proxy), or `all` (both on one port).'],
  [
    'API_URL',
    '',
    'URL at which the auth proxy reaches the API, such as `http://coordinator:8080`; if unset, this server.',
  ],
  [
    'PROXY_SECRET',
    '',
    'Secret that the auth proxy and the API share, at least 32 characters. Generated at each start if unset.',
  ],
  [
    'PROXY_SECRET_FILE',
    '',
    'File with that secret, used if PROXY_SECRET is unset; the API creates it if it does not exist.',
  ],
  ['AUTH_PROXY_URL', '', 'Public URL of the auth proxy, if it runs separately; written to `root.json`.'],
  ['PROXY_RATE_LIMIT_PER_ADDRESS', '600', 'Requests a minute from one address to the auth proxy; `0` for no limit.'],
  [
    'PROXY_RATE_LIMIT_PER_CONFIGURATION',
    '6000',
    'Requests a minute for one configuration of the auth proxy; `0` for no limit.',
  ],
  [
    'PROXY_RATE_LIMIT_CODES_PER_ADDRESS',
    '30',
    'Codes in ten minutes from one address, whomever they go to, through the auth proxy; `0` for no limit.',
  ],
  [
    'PROXY_RATE_LIMIT_PER_CONTACT',
    '10',
    'Codes in ten minutes from one address to one contact, through the auth proxy; `0` for no limit.',
  ],
  [
    'PROXY_RATE_LIMIT_SIGN_UPS_PER_ADDRESS',
    '20',
    'Sign-ups in ten minutes from one address through the auth proxy; `0` for no limit.',
  ],
  [
    'PROXY_CAPTCHA_VERIFY_URL',
    '',
    'Where the auth proxy checks captchas of sign-ups and codes: siteverify of Turnstile, hCaptcha or reCAPTCHA; none are required if unset.',
  ],
  ['PROXY_CAPTCHA_SECRET', '', 'Secret key of the captcha, from its provider.'],
  [
    'PROXY_CAPTCHA_SITE_KEY',
    '',
    'Site key of Turnstile, with which the React kit shows the captcha (`wallet_kit_client_params`).',
  ],
  [
    'ROOT_API_PUBLIC_KEY',
    '',
    'First start only: compressed P-256 public key of the root user, in hex. If set, no private key is created or written.',
  ],
  [
    'ACTIVITY_TIMESTAMPS',
    'text',
    '`createdAt` and `updatedAt` of activities: `text` (RFC 3339) or `object` (`{"seconds", "nanos"}`). Typed SDKs that announce themselves always get `object`. Webhooks always have `text`.',
  ],
  ['LOG_LEVEL', 'info', '`fatal`, `error`, `warn`, `info`, `debug` or `silent`.'],
  ['RATE_LIMIT_PER_ADDRESS', '', 'Requests a second from one address; no limit if unset.'],
  [
    'RATE_LIMIT_PER_ORGANIZATION',
    '',
    'Requests a second in one organization; no limit if unset. Only those of its users and of its parent’s count: set `RATE_LIMIT_PER_ADDRESS` against strangers.',
  ],
  ['RATE_LIMIT_PER_CREDENTIAL', '', 'Requests a second with one credential; no limit if unset.'],
  [
    'RATE_LIMIT_MAX_KEYS',
    '65536',
    'Number of callers and contacts that each limit remembers, at about 100 bytes each. Active ones are never forgotten: when the number is reached, new ones are refused.',
  ],
  [
    'ORGANIZATION_LIMITS',
    '',
    'Changes storage limits of organizations without a parent: `users=500, wallets=50` (docs/reference/limits.md).',
  ],
  [
    'SUB_ORGANIZATION_LIMITS',
    '',
    'Changes storage limits of sub-organizations; a parent can set lower ones (FEATURE_NAME_SUB_ORGANIZATION_LIMITS).',
  ],
  [
    'HEADERS_TIMEOUT',
    '15',
    'Seconds in which a client must send the headers of a request; after that, the connection is closed with 408.',
  ],
  ['REQUEST_TIMEOUT', '30', 'Seconds in which a client must send the whole request.'],
  ['TRUST_PROXY', 'false', "`true` takes the caller's address from X-Forwarded-For."],
  [
    'SHUTDOWN_DELAY_SECONDS',
    '0',
    'Seconds that a server which is told to stop reports that it is not ready, and still serves: set it to 5 behind a load balancer.',
  ],
  [
    'MIN_FREE_DISK',
    '256MiB',
    'Free space on the disk of DATA_DIR below which the server reports that it is not ready; below four times as much, that it is degraded.',
  ],
  ['BUILD_COMMIT', '', 'Commit that this build was made from, for the log and `countersign_build_info`.'],
  [
    'ALLOW_PRIVATE_NETWORK',
    'false',
    '`true` allows http, loopback and private addresses for OIDC issuers, webhooks and captchas; for development only.',
  ],
  [
    'OIDC_ISSUERS',
    '',
    'OIDC issuers whose tokens are accepted, separated by commas or spaces; any public https issuer if unset.',
  ],
  [
    'SOCIAL_LINKING_ISSUERS',
    'https://accounts.google.com',
    'OIDC issuers trusted to verify e-mail addresses when identities are linked (`socialLinkingClientIds`).',
  ],
  [
    'OAUTH2_PROVIDERS',
    '',
    'Further OAuth 2.0 providers as JSON: `{"OAUTH2_PROVIDER_…": {"tokenUrl", "userUrl", "userId", "scopes"}}`.',
  ],
  [
    'SMTP_URL',
    '',
    'Mail server: `smtp://user:password@host:587` or `smtps://…:465`. If unset, e-mail is written to `outbox.jsonl` in DATA_DIR.',
  ],
  [
    'MAIL_FROM',
    '',
    'Sender of e-mail, followed by further allowed sender domains: `Example <no-reply@example.com>, @example.org`.',
  ],
  [
    'SMS_WEBHOOK_URL',
    '',
    'SMS gateway: `https://…` (JSON) or `twilio://SID:TOKEN@api.twilio.com?from=+13214567890`. If unset, text messages are written to the outbox.',
  ],
  ['VOTE_NOTICES', 'false', '`true` notifies possible approvers by e-mail when an activity is waiting for votes.'],
  [
    'WEBAUTHN_ORIGINS',
    '',
    'Allowed passkey origins, separated by commas, for organizations that do not set FEATURE_NAME_WEBAUTHN_ORIGINS.',
  ],
  [
    'PASSKEY_COUNTERS',
    'report',
    'What a signature counter that has not grown leads to: `report` (a log line and a metric) or `strict` (the stamp is refused, too). Backup-eligible passkeys are exempt.',
  ],
  [
    'RESTORED',
    'false',
    '`true` starts read-only: queries are answered, activities and votes are refused, nothing is sent. It accepts a store that has lost events, and rebuilds the read models from what is there; the next start without it is normal.',
  ],
  [
    'SANDBOX',
    '',
    'For development only: until the end of this day (UTC, `2026-12-31`), `user@example.com` and `+19999999999` accept the code 000000.',
  ],
] as const satisfies readonly (readonly [string, string, string])[];

/** The name of a setting, such as `PORT`. */
export type SettingName = (typeof settings)[number][0];
