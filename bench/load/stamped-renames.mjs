import { createPrivateKey, sign } from 'node:crypto';
import { connect } from 'node:net';

/** An API key as node:crypto signs with it: twenty times faster than pure JavaScript, and the load must not be the bottleneck. */
export function privateKeyObject({ privateKey }) {
  const prefix = Buffer.from('30310201010420', 'hex');
  const curve = Buffer.from('a00a06082a8648ce3d030107', 'hex');
  return createPrivateKey({
    key: Buffer.concat([prefix, Buffer.from(privateKey, 'hex'), curve]),
    format: 'der',
    type: 'sec1',
  });
}

let counter = 0;

/** A stamped update_user_name as bytes of HTTP, each with another name. */
export function stampedRename({ path, host, organizationId, userId, publicKey, privateKey }) {
  counter += 1;
  const body = Buffer.from(
    JSON.stringify({
      type: 'ACTIVITY_TYPE_UPDATE_USER_NAME',
      timestampMs: String(Date.now()),
      organizationId,
      parameters: { userId, userName: `Bench ${counter}` },
    }),
  );
  const signature = sign('sha256', body, privateKey).toString('hex');
  const stamp = Buffer.from(JSON.stringify({ publicKey, scheme: 'SIGNATURE_SCHEME_TK_API_P256', signature }));
  const head =
    `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n` +
    `x-stamp: ${stamp.toString('base64url')}\r\ncontent-length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/**
 * One keep-alive connection that sends the next request when the answer to the last one is complete, until there is none.
 * `answered` is told the milliseconds of each. What is answered with 409 is sent again; rejects for any other answer that is not 200.
 */
export function connection(url, next, answered) {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    socket.setNoDelay(true);
    let started = 0;
    let buffer = '';
    let request;
    const send = () => {
      request = next();
      if (!request) return socket.end(resolve);
      started = performance.now();
      socket.write(request);
    };
    socket.on('connect', send);
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      buffer += chunk.toString('latin1');
      const headEnd = buffer.indexOf('\r\n\r\n');
      if (headEnd < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(buffer)?.[1] ?? 0);
      if (buffer.length < headEnd + 4 + length) return;
      if (buffer.startsWith('HTTP/1.1 409')) {
        // Other coordinators were first too often: the same request again, as the answer says.
        buffer = '';
        return socket.write(request);
      }
      if (!buffer.startsWith('HTTP/1.1 200')) return reject(new Error(buffer.slice(0, 600)));
      answered(performance.now() - started);
      buffer = '';
      send();
    });
  });
}
