import { generateKeyPairSync, sign } from 'node:crypto';

const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
};
const sequence = (...parts: readonly Uint8Array[]): Buffer => der(0x30, ...parts);
const text = (tag: number, value: string): Buffer => der(tag, Buffer.from(value, 'ascii'));
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));

const kinds = {
  ecdsa: {
    signedWith: sequence(oid('2a8648ce3d040302')),
    pair: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  },
  rsa: {
    signedWith: sequence(oid('2a864886f70d01010b'), der(0x05)),
    pair: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }),
  },
} as const;
const commonName = oid('550403');
const subjectAltName = oid('551d11');

/** A certificate of its own (RFC 5280) for one host name, made afresh so that no key lies in the repository. */
export function certificateFor(
  host: string,
  kind: keyof typeof kinds = 'ecdsa',
): { readonly key: string; readonly cert: string } {
  const { signedWith, pair } = kinds[kind];
  const { privateKey, publicKey } = pair();
  const name = sequence(der(0x31, sequence(commonName, text(0x0c, host))));
  const names = der(0x04, sequence(text(0x82, host)));
  const unsigned = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    signedWith,
    name,
    sequence(text(0x17, '000101000000Z'), text(0x17, '491231235959Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(sequence(subjectAltName, names))),
  );
  const signature = sign('sha256', unsigned, privateKey);
  const certificate = sequence(unsigned, signedWith, der(0x03, Buffer.from([0]), signature));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64').replace(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`,
  };
}
