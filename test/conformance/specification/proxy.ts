import { addressFormats, curves, pathFormats } from './queries.js';
import {
  flag,
  list,
  map,
  number,
  object,
  oneOf,
  shownAsOptional,
  shownAsRequired,
  text,
  uuid,
  type ProxyEndpoint,
} from './shape.js';

const none = { least: 0, source: 'client protocol' } as const;
const hex = text({ form: 'hex' });

const clientSignature = object(
  shownAsRequired('publicKey', hex),
  shownAsRequired('scheme', oneOf([], ['CLIENT_SIGNATURE_SCHEME_API_P256'])),
  shownAsRequired('message', text()),
  shownAsRequired('signature', hex),
);

const wallet = object(
  shownAsRequired('walletName', text()),
  shownAsRequired(
    'accounts',
    list(
      object(
        shownAsRequired('curve', oneOf([], curves), { valuesIn: 'list_wallet_accounts' }),
        shownAsRequired('pathFormat', oneOf([], pathFormats)),
        shownAsRequired('path', text()),
        shownAsRequired('addressFormat', oneOf([], addressFormats), { valuesIn: 'list_wallet_accounts' }),
        shownAsOptional('name', text()),
      ),
    ),
  ),
  shownAsOptional('mnemonicLength', number()),
);

/**
 * Section 4.1 with the fields of the client protocol, section 5.3: the specification shows paths and purposes, no fields.
 */
export const proxyEndpoints: readonly ProxyEndpoint[] = [
  {
    section: '4.1',
    path: 'signup',
    body: [
      shownAsOptional('userEmail', text({ form: 'email' })),
      shownAsOptional('userPhoneNumber', text({ form: 'E.164' })),
      shownAsOptional('userTag', text(), { unread: true }),
      shownAsOptional('userName', text()),
      shownAsOptional('organizationName', text()),
      shownAsOptional('verificationToken', text()),
      shownAsRequired(
        'apiKeys',
        list(
          object(
            shownAsRequired('apiKeyName', text()),
            shownAsRequired('publicKey', hex),
            shownAsRequired(
              'curveType',
              oneOf([], ['API_KEY_CURVE_P256', 'API_KEY_CURVE_SECP256K1', 'API_KEY_CURVE_ED25519']),
            ),
            shownAsOptional('expirationSeconds', text({ form: 'decimal' })),
          ),
          none,
        ),
        { missingMayBeEmpty: true },
      ),
      shownAsRequired(
        'authenticators',
        list(
          object(
            shownAsRequired('authenticatorName', text()),
            shownAsRequired('challenge', text()),
            shownAsRequired(
              'attestation',
              object(
                shownAsRequired('credentialId', text()),
                shownAsRequired('clientDataJson', text()),
                shownAsRequired('attestationObject', text()),
                shownAsRequired(
                  'transports',
                  list(
                    oneOf(
                      [],
                      [
                        'AUTHENTICATOR_TRANSPORT_BLE',
                        'AUTHENTICATOR_TRANSPORT_INTERNAL',
                        'AUTHENTICATOR_TRANSPORT_NFC',
                        'AUTHENTICATOR_TRANSPORT_USB',
                        'AUTHENTICATOR_TRANSPORT_HYBRID',
                      ],
                    ),
                    none,
                  ),
                ),
              ),
            ),
          ),
          none,
        ),
        { missingMayBeEmpty: true },
      ),
      shownAsRequired(
        'oauthProviders',
        list(object(shownAsRequired('providerName', text()), shownAsRequired('oidcToken', text())), none),
        { missingMayBeEmpty: true },
      ),
      shownAsOptional('wallet', wallet),
      shownAsOptional('clientSignature', clientSignature),
    ],
    response: [
      shownAsRequired('organizationId', uuid),
      shownAsOptional('wallet', object(shownAsRequired('walletId', uuid), shownAsRequired('addresses', list(text())))),
      shownAsRequired('userId', uuid),
      shownAsOptional('appProofs', list(map)),
    ],
  },
  {
    section: '4.1',
    path: 'otp_init',
    body: [
      shownAsRequired('otpType', oneOf([], ['OTP_TYPE_EMAIL', 'OTP_TYPE_SMS'])),
      shownAsRequired('contact', text({ form: 'email' })),
      shownAsOptional('emailCustomization', object(shownAsOptional('templateId', text()))),
    ],
    response: [shownAsRequired('otpId', uuid)],
  },
  {
    section: '4.1',
    path: 'otp_verify',
    body: [shownAsRequired('otpId', uuid), shownAsRequired('otpCode', text()), shownAsOptional('publicKey', hex)],
    response: [shownAsRequired('verificationToken', text())],
  },
  {
    section: '4.1',
    path: 'otp_login',
    body: [
      shownAsRequired('verificationToken', text()),
      shownAsRequired('publicKey', hex),
      shownAsOptional('invalidateExisting', flag),
      shownAsOptional('organizationId', uuid),
      shownAsOptional('clientSignature', clientSignature),
    ],
    response: [shownAsRequired('session', text())],
  },
  {
    section: '4.1',
    path: 'oauth2_authenticate',
    body: [
      shownAsRequired('provider', oneOf([], ['OAUTH2_PROVIDER_X', 'OAUTH2_PROVIDER_DISCORD']), {
        openValues: true,
      }),
      shownAsRequired('authCode', text()),
      shownAsRequired('redirectUri', text()),
      shownAsRequired('codeVerifier', text()),
      shownAsRequired('nonce', text()),
      shownAsRequired('clientId', text()),
    ],
    response: [shownAsRequired('oidcToken', text())],
  },
  {
    section: '4.1',
    path: 'oauth_login',
    body: [
      shownAsRequired('oidcToken', text()),
      shownAsRequired('publicKey', hex),
      shownAsOptional('invalidateExisting', flag),
      shownAsOptional('organizationId', uuid),
    ],
    response: [shownAsRequired('session', text())],
  },
  {
    section: '4.1',
    path: 'account',
    body: [
      shownAsRequired(
        'filterType',
        oneOf(
          [],
          ['EMAIL', 'PHONE_NUMBER', 'OIDC_TOKEN', 'OIDC_CLAIMS', 'PUBLIC_KEY', 'CREDENTIAL_ID', 'NAME', 'USERNAME'],
        ),
      ),
      shownAsRequired('filterValue', text()),
      shownAsOptional('verificationToken', text()),
      shownAsOptional('oidcToken', text(), { unread: true }),
    ],
    response: [shownAsOptional('organizationId', uuid)],
  },
  {
    section: '4.1',
    path: 'wallet_kit_config',
    body: [],
    response: [
      shownAsRequired('enabledProviders', list(text())),
      shownAsRequired('sessionExpirationSeconds', text({ form: 'decimal' })),
      shownAsRequired('organizationId', uuid),
      shownAsOptional('oauthClientIds', map),
      shownAsOptional('oauthRedirectUrl', text()),
      shownAsOptional('otpAlphanumeric', flag),
      shownAsOptional('otpLength', text({ form: 'decimal' })),
    ],
  },
];
