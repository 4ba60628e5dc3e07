/**
 * Signs people up and logs them in: with a code by e-mail, with a passkey, or both. There is no back end of this page;
 * the published client talks to the auth proxy (no key needed) and, stamped with a key of this browser, to the API.
 */
import { OtpType, StamperType, TurnkeyClient } from '@turnkey/core';

const config = await (await fetch('config.json')).json();

// The RP id is the host name, so a passkey of localhost works on every port of localhost, and nowhere else.
const client = new TurnkeyClient({ ...config, passkeyConfig: { rpId: location.hostname } });
await client.init();

const element = (id) => document.getElementById(id);
const show = (id, isShown = true) => (element(id).hidden = !isShown);
const write = (id, text) => (element(id).textContent = text);

/** Runs what a button or form is for: one thing at a time, and what goes wrong is said on the page. */
function on(id, eventName, busy, action) {
  element(id).addEventListener(eventName, async (event) => {
    event.preventDefault();
    const buttons = [...document.querySelectorAll('button')];
    for (const button of buttons) button.disabled = true;
    write('problem', '');
    write('status', busy);
    try {
      await action();
    } catch (error) {
      write('problem', wordsOf(error));
    } finally {
      write('status', '');
      for (const button of buttons) button.disabled = false;
    }
  });
}

/** The client says what it wanted to do; its cause says why the server did not. */
function wordsOf(error) {
  const words = [];
  for (let one = error; one instanceof Error; one = one.cause)
    if (!words.includes(one.message)) words.push(one.message);
  return words.join(': ');
}

// The code that was asked for last.
let sent;

on('email-form', 'submit', 'Sending a code…', async () => {
  const contact = element('email').value.trim();
  sent = { contact, otpType: OtpType.Email, otpId: await client.initOtp({ otpType: OtpType.Email, contact }) };
  write('sent-to', contact);
  askForCode(true);
});

on('other-address', 'click', '', async () => askForCode(false));

on('code-form', 'submit', 'Checking the code…', async () => {
  // A code is good once; who then turns the passkey down may go on without.
  sent.proof ??= await prove(element('code').value.trim());
  const { publicKey, verificationToken, subOrganizationId } = sent.proof;
  if (subOrganizationId) {
    await client.loginWithOtp({ verificationToken, publicKey, organizationId: subOrganizationId });
  } else {
    const createSubOrgParams = { userName: sent.contact, subOrgName: sent.contact };
    if (element('with-passkey').checked) createSubOrgParams.authenticators = [await newPasskey()];
    await client.signUpWithOtp({ ...sent, verificationToken, publicKey, createSubOrgParams });
  }
  await showHome();
});

on('passkey-login', 'click', 'Waiting for your passkey…', async () => {
  await client.loginWithPasskey();
  await showHome();
});

on('passkey-signup', 'click', 'Waiting for your passkey…', async () => {
  await client.signUpWithPasskey({ passkeyDisplayName: passkeyName() });
  await showHome();
});

on('add-passkey', 'click', 'Waiting for your passkey…', async () => {
  await client.addPasskey({ name: passkeyName() });
  await showHome();
});

on('name-form', 'submit', 'Waiting for your passkey…', async () => {
  await client.updateUserName({ userName: element('new-name').value.trim(), stampWith: StamperType.Passkey });
  await showHome();
});

on('log-out', 'click', '', async () => {
  await client.clearSession();
  showWelcome();
});

/** What a code is exchanged for: a token that says whose contact it was, bound to a key pair of this browser. */
async function prove(otpCode) {
  // Its private half cannot be taken out of the browser, so the token is worth nothing to whoever else sees it.
  const publicKey = await client.createApiKeyPair();
  return { publicKey, ...(await client.verifyOtp({ ...sent, otpCode, publicKey })) };
}

async function newPasskey() {
  const authenticatorName = passkeyName();
  const { encodedChallenge, attestation } = await client.createPasskey({ name: authenticatorName });
  return { authenticatorName, challenge: encodedChallenge, attestation };
}

/** What the browser's dialogs show. The client takes letters, digits, and few signs. */
function passkeyName() {
  return `Countersign example ${new Date().toISOString().slice(0, 19).replace('T', ' ')}`;
}

function askForCode(isAsked) {
  element('code').value = '';
  show('code-form', isAsked);
  show('email-form', !isAsked);
  show('passkeys', !isAsked);
  element(isAsked ? 'code' : 'email').focus();
}

function showWelcome() {
  askForCode(false);
  show('home', false);
  show('welcome');
  element('welcome-title').focus();
}

/** Everything here is asked of the server, with a stamp of the session's key. */
async function showHome() {
  const session = await client.getSession();
  const [me, user] = await Promise.all([client.httpClient.getWhoami(), client.fetchUser()]);
  write('user-name', me.username);
  write('user-id', me.userId);
  write('organization-name', me.organizationName);
  write('organization-id', me.organizationId);
  write('session-end', new Date(session.expiry * 1000).toLocaleTimeString());
  write('passkey-names', user.authenticators.map(({ authenticatorName }) => authenticatorName).join(', ') || 'none');
  element('name-form').reset();
  show('name-form', user.authenticators.length > 0);
  show('welcome', false);
  show('home');
  element('home-title').focus();
}

// Who comes back while the session lasts is still logged in.
const session = await client.getSession();
if (session && session.expiry * 1000 > Date.now()) await showHome();
else showWelcome();
