import * as grpc from '@grpc/grpc-js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import type { AppendReq, AppendResp, BatchAppendResp } from '@eventstore/db-client/generated/streams_pb.js';
import streamsService from '@eventstore/db-client/generated/streams_grpc_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import { randomUUID } from 'node:crypto';
import { until } from '../../../e2e/until.js';
import { EventStoreDouble } from './double.js';

let double: EventStoreDouble;
const clients: grpc.Client[] = [];

beforeEach(async () => {
  double = await EventStoreDouble.start();
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await double.stop();
});

function aClient() {
  const client = new streamsService.StreamsClient(`127.0.0.1:${double.port}`, grpc.credentials.createInsecure());
  clients.push(client);
  return client;
}

type Expecting = 'no_stream' | 'any' | 'stream_exists';

/** A classic append of so many events, to a stream that is not there yet unless told, left open. */
function appendTo(stream: string, count: number, expected: Expecting = 'no_stream', id = randomUUID()) {
  const client = aClient();
  let call: grpc.ClientWritableStream<AppendReq> | undefined;
  const outcome = new Promise<AppendResp | grpc.ServiceError>((resolve) => {
    call = client.append(new grpc.Metadata(), (error, response) => resolve(error ?? response));
  });
  const identifier = new shared.StreamIdentifier().setStreamName(Buffer.from(stream));
  const options = new streams.AppendReq.Options().setStreamIdentifier(identifier);
  if (expected === 'no_stream') options.setNoStream(new shared.Empty());
  else if (expected === 'any') options.setAny(new shared.Empty());
  else options.setStreamExists(new shared.Empty());
  call!.write(new streams.AppendReq().setOptions(options));
  for (let number = 0; number < count; number++) {
    const message = new streams.AppendReq.ProposedMessage()
      .setId(new shared.UUID().setString(number === 0 ? id : randomUUID()))
      .setData(Buffer.from('{}'));
    message.getMetadataMap().set('type', 'Happened').set('content-type', 'application/json');
    call!.write(new streams.AppendReq().setProposedMessage(message));
  }
  return { call: call!, outcome };
}

const cuts: readonly (readonly [string, (call: grpc.ClientWritableStream<AppendReq>) => void])[] = [
  ['its connection is cut', () => double.cut()],
  ['its caller gives up', (call) => call.cancel()],
];

test.each(cuts)('of an append of which %s between two events nothing is written', async (_, cut) => {
  const { call, outcome } = appendTo('organization-a', 2);
  await until('both events have come', () => double.proposed === 2);
  cut(call);
  expect(await outcome).toMatchObject({ code: expect.any(Number) as unknown });
  // Another caller, who comes later, finds no such stream.
  const later = appendTo('organization-a', 1);
  later.call.end();
  expect(await later.outcome).toBeInstanceOf(streams.AppendResp);
  expect(double.log.read('organization-a')).toHaveLength(1);
  expect(double.appends).toEqual({ batch: 0, classic: 1 });
});

/** The answer to an append of one event, as it comes over the wire. */
async function answerTo(...asked: [expected?: Expecting, id?: ReturnType<typeof randomUUID>]) {
  const { call, outcome } = appendTo('organization-a', 1, ...asked);
  call.end();
  return outcome;
}

/** The same on the batch path. */
function batchAnswer(): Promise<BatchAppendResp> {
  const call = aClient().batchAppend();
  const identifier = new shared.StreamIdentifier().setStreamName(Buffer.from('organization-a'));
  const message = new streams.BatchAppendReq.ProposedMessage()
    .setId(new shared.UUID().setString(randomUUID()))
    .setData(Buffer.from('{}'));
  message.getMetadataMap().set('type', 'Happened').set('content-type', 'application/json');
  const answer = new Promise<BatchAppendResp>((resolve, reject) => call.on('data', resolve).on('error', reject));
  call.write(
    new streams.BatchAppendReq()
      .setCorrelationId(new shared.UUID().setString(randomUUID()))
      .setOptions(new streams.BatchAppendReq.Options().setStreamIdentifier(identifier).setNoStream(new empty.Empty()))
      .setProposedMessagesList([message])
      .setIsFinal(true),
  );
  return answer;
}

describe('as the sources of the server have it', () => {
  const written = async (answer: Promise<AppendResp | grpc.ServiceError>) =>
    ((await answer) as AppendResp).getSuccess()?.getCurrentRevision();

  test('an append to `any` with the ids of earlier events writes nothing, and is told where they are', async () => {
    const id = randomUUID();
    expect(await written(answerTo('no_stream', id))).toBe('0');
    expect(await written(answerTo('any'))).toBe('1');
    expect(await written(answerTo('any', id))).toBe('0');
    expect(double.log.read('organization-a')).toHaveLength(2);
  });

  test('`stream_exists` is refused where there is no stream', async () => {
    const refused = ((await answerTo('stream_exists')) as AppendResp).getWrongExpectedVersion();
    expect([refused?.hasCurrentNoStream(), refused?.hasExpectedStreamExists()]).toEqual([true, true]);
    await answerTo();
    expect(await written(answerTo('stream_exists'))).toBe('1');
  });

  test('a wrong `no_stream` is repeated as -1 without a sign, in a batch as itself', async () => {
    await answerTo();
    const refused = ((await answerTo()) as AppendResp).getWrongExpectedVersion();
    expect([refused?.getExpectedRevision(), refused?.getCurrentRevision()]).toEqual(['18446744073709551615', '0']);
    const detail = (await batchAnswer()).getError()?.getDetails();
    expect(detail?.getTypeUrl()).toContain('WrongExpectedVersion');
    const wrong = shared.WrongExpectedVersion.deserializeBinary(detail!.getValue_asU8());
    expect([wrong.hasExpectedNoStream(), wrong.getCurrentStreamRevision()]).toEqual([true, '0']);
  });

  test('a write that times out is ABORTED, and in a batch its own detail', async () => {
    double.appendFaults.push('timeout-after');
    expect(await answerTo()).toMatchObject({ code: grpc.status.ABORTED });
    double.appendFaults.push('timeout-after');
    expect((await batchAnswer()).getError()?.getDetails()?.getTypeUrl()).toContain('Timeout');
  });

  test('a server that is not ready says so in a batch with nothing but Empty', async () => {
    double.appendFaults.push('not-ready-before');
    const error = (await batchAnswer()).getError();
    expect(error?.getMessage()).toBe('Server Is Not Ready');
    expect(error?.getDetails()?.getTypeUrl()).toMatch(/google\.protobuf\.Empty$/);
  });
});
