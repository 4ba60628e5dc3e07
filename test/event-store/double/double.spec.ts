import * as grpc from '@grpc/grpc-js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import type { AppendReq, AppendResp } from '@eventstore/db-client/generated/streams_pb.js';
import streamsService from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { randomUUID } from 'node:crypto';
import { until } from '../../e2e/until.js';
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

/** A classic append of so many events to a stream that is not there yet, left open. */
function appendTo(stream: string, count: number) {
  const client = new streamsService.StreamsClient(`127.0.0.1:${double.port}`, grpc.credentials.createInsecure());
  clients.push(client);
  let call: grpc.ClientWritableStream<AppendReq> | undefined;
  const outcome = new Promise<AppendResp | grpc.ServiceError>((resolve) => {
    call = client.append(new grpc.Metadata(), (error, response) => resolve(error ?? response));
  });
  const identifier = new shared.StreamIdentifier().setStreamName(Buffer.from(stream));
  const options = new streams.AppendReq.Options().setStreamIdentifier(identifier).setNoStream(new shared.Empty());
  call!.write(new streams.AppendReq().setOptions(options));
  for (let number = 0; number < count; number++) {
    const message = new streams.AppendReq.ProposedMessage()
      .setId(new shared.UUID().setString(randomUUID()))
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
