import { uuidPattern } from '../domain/uuid.js';

/** The page where an invitation is accepted: no framework, nothing from elsewhere, and no secret that leaves it. */

export const invitationHtml = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Accept an invitation</title>
<link rel="stylesheet" href="/invitations/accept.css">
</head>
<body>
<main>
<h1>Accept your invitation</h1>
<p id="greeting">This page needs JavaScript.</p>
<section id="web" hidden>
<p>From now on, a passkey lets you in: your fingerprint, your face or the PIN of this device. It never leaves your device.</p>
<button id="passkey" type="button">Create a passkey</button>
</section>
<form id="api" hidden>
<p>Generate a P-256 key with your own tools, keep the private key, and enter the public key here.</p>
<label>Name of the key <input id="key-name" maxlength="255" value="my key" required></label>
<label>Public key, compressed, 66 hexadecimal characters
<input id="public-key" pattern="0[23][0-9a-fA-F]{64}" spellcheck="false" autocomplete="off" required></label>
<button type="submit">Accept with this key</button>
</form>
<p id="status" role="status"></p>
</main>
<script src="/invitations/accept.js"></script>
</body>
</html>
`;

export const invitationCss = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 34rem; margin: 3rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
label { display: block; margin: 1rem 0; }
input { display: block; width: 100%; box-sizing: border-box; font: inherit; padding: 0.5rem; }
button { font: inherit; padding: 0.6rem 1.2rem; cursor: pointer; }
#status { margin-top: 1.5rem; font-weight: 600; }
`;

/**
 * Reads the link's fragment, makes a passkey or takes an API key, and stamps accept_invitation with the key of the link
 * (docs/protocol.md, API key stamps and passkey stamps).
 */
export const invitationScript = `'use strict';
(() => {
  const element = (id) => document.getElementById(id);
  const say = (text) => { element('status').textContent = text; };
  const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const base64Url = (bytes) =>
    btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  const link = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  const uuid = ${String(uuidPattern)};
  const isWhole =
    uuid.test(link.organizationId) &&
    uuid.test(link.invitationId) &&
    /^0[23][0-9a-f]{64}$/.test(link.publicKey) &&
    /^[0-9a-f]{64}$/.test(link.privateKey);
  if (!isWhole) {
    element('greeting').textContent = 'This link is incomplete. Open it from the e-mail again, or ask for a new invitation.';
    return;
  }
  // Browsers make no passkeys for bare addresses, but for this name of the same machine.
  if (location.hostname === '127.0.0.1') {
    location.hostname = 'localhost';
    return;
  }

  // The other coordinate of a compressed point (SEC 1, section 2.3.4), which Web Crypto asks for.
  const p = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n;
  const b = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn;
  const power = (base, exponent) => {
    let result = 1n;
    for (let square = base % p, rest = exponent; rest > 0n; rest >>= 1n, square = (square * square) % p) {
      if (rest & 1n) result = (result * square) % p;
    }
    return result;
  };
  const yOf = (compressed) => {
    const x = BigInt('0x' + compressed.slice(2));
    const y = power((((x * x - 3n) % p) * x + b) % p + p, (p + 1n) / 4n);
    const isOdd = compressed.startsWith('03');
    return ((y & 1n) === 1n) === isOdd ? y : p - y;
  };
  // A positive integer in DER (X.690, section 8.3).
  const integer = (bytes) => {
    const start = bytes.findIndex((byte) => byte !== 0);
    const digits = [...bytes.subarray(start)];
    if (digits[0] & 0x80) digits.unshift(0);
    return [2, digits.length, ...digits];
  };
  const stamp = async (body) => {
    const jwk = {
      kty: 'EC',
      crv: 'P-256',
      x: base64Url(bytesOf(link.publicKey.slice(2))),
      y: base64Url(bytesOf(yOf(link.publicKey).toString(16).padStart(64, '0'))),
      d: base64Url(bytesOf(link.privateKey)),
    };
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
    const key = await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['sign']);
    const raw = new Uint8Array(await crypto.subtle.sign(algorithm, key, new TextEncoder().encode(body)));
    const parts = [...integer(raw.subarray(0, 32)), ...integer(raw.subarray(32))];
    const signature = hexOf([0x30, parts.length, ...parts]);
    const text = JSON.stringify({ publicKey: link.publicKey, scheme: 'SIGNATURE_SCHEME_TK_API_P256', signature });
    return base64Url(new TextEncoder().encode(text));
  };
  const accept = async (credentials) => {
    const body = JSON.stringify({
      type: 'ACTIVITY_TYPE_ACCEPT_INVITATION',
      timestampMs: String(Date.now()),
      organizationId: link.organizationId,
      parameters: { invitationId: link.invitationId, ...credentials },
    });
    const headers = { 'content-type': 'application/json', 'x-stamp': await stamp(body) };
    const response = await fetch('/public/v1/submit/accept_invitation', { method: 'POST', headers, body });
    const answer = await response.json();
    if (answer.turnkeyErrorCode === 'PUBLIC_KEY_NOT_FOUND') {
      throw new Error('this invitation has expired or was withdrawn. Ask for a new one.');
    }
    if (!response.ok) throw new Error(answer.message);
    return answer.activity.result.acceptInvitationResult.userId;
  };
  const transports = { ble: 'BLE', internal: 'INTERNAL', nfc: 'NFC', usb: 'USB', hybrid: 'HYBRID' };
  const passkey = async () => {
    const challenge = crypto.getRandomValues(new Uint8Array(32));
    const name = link.userName || 'user';
    const made = await navigator.credentials.create({
      publicKey: {
        challenge,
        rp: { id: location.hostname, name: location.hostname },
        user: { id: new TextEncoder().encode(link.invitationId), name, displayName: name },
        pubKeyCredParams: [-7, -8, -257].map((alg) => ({ type: 'public-key', alg })),
        authenticatorSelection: { residentKey: 'preferred', requireResidentKey: false, userVerification: 'preferred' },
        attestation: 'none',
      },
    });
    const { response, rawId } = made;
    const reached = response.getTransports ? response.getTransports() : [];
    return {
      authenticatorName: 'passkey',
      challenge: base64Url(challenge),
      attestation: {
        credentialId: base64Url(rawId),
        clientDataJson: base64Url(response.clientDataJSON),
        attestationObject: base64Url(response.attestationObject),
        transports: reached.filter((one) => transports[one]).map((one) => 'AUTHENTICATOR_TRANSPORT_' + transports[one]),
      },
    };
  };

  let isBusy = false;
  const run = (credentials) => async (event) => {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    say('One moment…');
    try {
      const userId = await accept(await credentials());
      // The link is used up and holds a key: keep it out of the browser history.
      history.replaceState(null, '', location.pathname);
      element('web').hidden = true;
      element('api').hidden = true;
      say('Welcome. You are user ' + userId + ' of organization ' + link.organizationId + '.');
    } catch (error) {
      say('It did not work: ' + error.message);
      isBusy = false;
    }
  };
  element('greeting').textContent = 'Hello' + (link.userName ? ' ' + link.userName : '') + ', choose how you want to sign in.';
  element('web').hidden = link.accessType === 'ACCESS_TYPE_API';
  element('api').hidden = link.accessType === 'ACCESS_TYPE_WEB';
  element('passkey').addEventListener('click', run(async () => ({ authenticators: [await passkey()] })));
  element('api').addEventListener('submit', run(async () => ({
    apiKeys: [
      {
        apiKeyName: element('key-name').value,
        publicKey: element('public-key').value.trim(),
        curveType: 'API_KEY_CURVE_P256',
      },
    ],
  })));
})();
`;
