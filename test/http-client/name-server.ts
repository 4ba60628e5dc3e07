import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';

/** What a name server knows of a name: its addresses, `nothing` if there is no such name, or that it never answers. */
export type Known = readonly string[] | 'nothing' | 'never';

const types = { a: 1, aaaa: 28 };
const headerBytes = 12;

/** A name server on loopback (RFC 1035, UDP), which answers for the names of `known`, in lower case. */
export async function startNameServer(known: Readonly<Record<string, Known>>) {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', (query, { port, address }) => {
    const { name, end } = nameAt(query, headerBytes);
    const type = query.readUInt16BE(end);
    asked.push(name);
    const what = known[name] ?? 'nothing';
    if (what === 'never') return;
    const addresses = what === 'nothing' ? [] : what.filter((one) => isIPv6(one) === (type === types.aaaa));
    const header = Buffer.from(query.subarray(0, headerBytes));
    // An answer, recursion available; 3 is NXDOMAIN.
    header.writeUInt16BE(0x8180 | (what === 'nothing' ? 3 : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(addresses.length, 6);
    header.writeUInt32BE(0, 8);
    const question = query.subarray(headerBytes, end + 4);
    socket.send(Buffer.concat([header, question, ...addresses.map((one) => record(one, type))]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    server: `127.0.0.1:${socket.address().port}`,
    asked: asked as readonly string[],
    close: () => new Promise<void>((resolve) => socket.close(resolve)),
  };
}

function nameAt(query: Buffer, start: number): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let at = start;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

/** A resource record of the name of the question. */
function record(address: string, type: number): Buffer {
  const data = isIPv6(address) ? ipv6(address) : Buffer.from(address.split('.').map(Number));
  const fixed = Buffer.alloc(12);
  fixed.writeUInt16BE(0xc000 | headerBytes, 0);
  fixed.writeUInt16BE(type, 2);
  fixed.writeUInt16BE(1, 4);
  fixed.writeUInt32BE(60, 6);
  fixed.writeUInt16BE(data.length, 10);
  return Buffer.concat([fixed, data]);
}

/** Of an address in the form `a::b`. */
function ipv6(address: string): Buffer {
  const [front, back] = address.split('::').map((part) => part.split(':').map((group) => parseInt(group || '0', 16)));
  const groups = [...front!, ...Array<number>(8 - front!.length - back!.length).fill(0), ...back!];
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}
