import * as grpc from '@grpc/grpc-js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import type { UUID } from '@eventstore/db-client/generated/shared_pb.js';
import code from '@eventstore/db-client/generated/code_pb.js';
import type { Code } from '@eventstore/db-client/generated/code_pb.js';
import status from '@eventstore/db-client/generated/status_pb.js';
import type { Status } from '@eventstore/db-client/generated/status_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import type { AppendReq, BatchAppendReq, ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import any from 'google-protobuf/google/protobuf/any_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import type { Expectation, LogEvent, Proposed } from './log.js';

/** Between the double's terms and the messages of the wire (the protocol files of the server, 24.10). */

/** A gRPC error with the trailers by which the server says what it means. */
export function serverError(
  code: grpc.status,
  details: string,
  trailers: Record<string, string> = {},
): Partial<grpc.ServiceError> {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
  return { code, details, metadata };
}

export function streamDeletedError(stream: string): Partial<grpc.ServiceError> {
  return serverError(grpc.status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, {
    exception: 'stream-deleted',
    'stream-name': stream,
  });
}

export function accessDeniedError(): Partial<grpc.ServiceError> {
  return serverError(grpc.status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });
}

/** What a server answers that follows nobody it knows of, such as during an election. */
export function noLeaderError(): Partial<grpc.ServiceError> {
  return serverError(grpc.status.UNKNOWN, NO_LEADER);
}

export const NO_LEADER = 'No leader info available in response';

export function notLeaderError({ host, port }: { host: string; port: number }): Partial<grpc.ServiceError> {
  return serverError(grpc.status.NOT_FOUND, `Leader info available: ${host}:${port}`, {
    exception: 'not-leader',
    'leader-endpoint-host': host,
    'leader-endpoint-port': String(port),
  });
}

/** A failed append inside a batch: a status with what it means packed into it. */
export function batchError(number: Code, message: string, type: string, detail: Uint8Array): Status {
  const packed = new any.Any();
  packed.pack(detail, type);
  return new status.Status().setCode(number).setMessage(message).setDetails(packed);
}

export function wrongVersion(expected: Expectation, current: bigint | undefined): Status {
  const detail = new shared.WrongExpectedVersion();
  if (current === undefined) detail.setCurrentNoStream(new empty.Empty());
  else detail.setCurrentStreamRevision(String(current));
  if (expected === 'no_stream') detail.setExpectedNoStream(new empty.Empty());
  else if (typeof expected === 'bigint') detail.setExpectedStreamPosition(String(expected));
  else if (expected === 'stream_exists') detail.setExpectedStreamExists(new empty.Empty());
  else detail.setExpectedAny(new empty.Empty());
  return batchError(
    code.Code.ALREADY_EXISTS,
    'WrongExpectedVersion',
    'event_store.client.WrongExpectedVersion',
    detail.serializeBinary(),
  );
}

/** What the server answers inside a batch that it has not handled: no code, and a detail that the client does not know. */
export function notHandled(message: string): Status {
  return batchError(code.Code.OK, message, 'google.protobuf.Empty', new empty.Empty().serializeBinary());
}

export function accessDenied(): Status {
  return batchError(
    code.Code.PERMISSION_DENIED,
    'AccessDenied',
    'event_store.client.AccessDenied',
    new shared.AccessDenied().serializeBinary(),
  );
}

export function timeout(): Status {
  return batchError(
    code.Code.DEADLINE_EXCEEDED,
    'Timeout',
    'event_store.client.Timeout',
    new shared.Timeout().serializeBinary(),
  );
}

export function oversize(limit: number): Status {
  return batchError(
    code.Code.INVALID_ARGUMENT,
    'Maximum Append Size Exceeded',
    'event_store.client.MaximumAppendSizeExceeded',
    new shared.MaximumAppendSizeExceeded().setMaxappendsize(limit).serializeBinary(),
  );
}

/** KurrentDB's limit of one event, which the published client does not know: its detail does not matter. */
export function oversizeEvent(): Status {
  return batchError(
    code.Code.INVALID_ARGUMENT,
    'MaximumAppendEventSizeExceeded',
    'event_store.client.MaximumAppendEventSizeExceeded',
    new Uint8Array(),
  );
}

export function uuidText(uuid: UUID | undefined): string {
  if (uuid === undefined) return '';
  const structured = uuid.getStructured();
  if (structured === undefined) return uuid.getString();
  const half = (bits: string): string => BigInt.asUintN(64, BigInt(bits)).toString(16).padStart(16, '0');
  const hex = half(structured.getMostSignificantBits()) + half(structured.getLeastSignificantBits());
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

export function streamName(identifier: { getStreamName_asU8(): Uint8Array } | undefined): string {
  return Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8');
}

export function expectation(options: AppendReq.Options | undefined): Expectation {
  if (options?.hasNoStream()) return 'no_stream';
  if (options?.hasStreamExists()) return 'stream_exists';
  return options?.hasAny() ? 'any' : BigInt(options?.getRevision() ?? 0);
}

export function batchExpectation(options: BatchAppendReq.Options | undefined): Expectation {
  if (options?.hasNoStream()) return 'no_stream';
  if (options?.hasStreamExists()) return 'stream_exists';
  return options?.hasAny() ? 'any' : BigInt(options?.getStreamPosition() ?? 0);
}

export function proposed(message: AppendReq.ProposedMessage | BatchAppendReq.ProposedMessage): Proposed {
  return {
    id: uuidText(message.getId()),
    type: message.getMetadataMap().get('type') ?? '',
    contentType: message.getMetadataMap().get('content-type') ?? '',
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}

const TICKS_PER_MILLISECOND = 10_000n;
/** What the server says for "no position", as an unsigned number. */
export const NO_POSITION = String(2n ** 64n - 1n);

/** @param positions false for a server older than 22.6, which has none in stream reads */
export function eventResponse(event: LogEvent, positions = true): InstanceType<typeof streams.ReadResp> {
  const position = positions ? String(event.position) : NO_POSITION;
  const recorded = new streams.ReadResp.ReadEvent.RecordedEvent()
    .setId(new shared.UUID().setString(event.id))
    .setStreamIdentifier(new shared.StreamIdentifier().setStreamName(Buffer.from(event.stream).toString('base64')))
    .setStreamRevision(String(event.revision))
    .setCommitPosition(position)
    .setPreparePosition(position)
    .setData(event.data)
    .setCustomMetadata(event.metadata);
  recorded.getMetadataMap().set('type', event.type);
  recorded.getMetadataMap().set('content-type', event.contentType);
  recorded.getMetadataMap().set('created', String(BigInt(event.created.getTime()) * TICKS_PER_MILLISECOND));
  const read = new streams.ReadResp.ReadEvent().setEvent(recorded);
  if (positions) read.setCommitPosition(position);
  else read.setNoPosition(new shared.Empty());
  return new streams.ReadResp().setEvent(read);
}

/** Which events a read of everything wants. */
export function wanted(filter: ReadReq.Options.FilterOptions | undefined): (event: LogEvent) => boolean {
  const byStream = filter?.getStreamIdentifier();
  const expression = byStream ?? filter?.getEventType();
  if (expression === undefined) return () => true;
  const prefixes = expression.getPrefixList();
  const pattern = prefixes.length > 0 ? undefined : new RegExp(expression.getRegex());
  return ({ stream, type }) => {
    const subject = byStream === undefined ? type : stream;
    return pattern === undefined ? prefixes.some((prefix) => subject.startsWith(prefix)) : pattern.test(subject);
  };
}
