import * as grpc from '@grpc/grpc-js';
import code from '@eventstore/db-client/generated/code_pb.js';
import gossip from '@eventstore/db-client/generated/gossip_pb.js';
import gossipService from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import features from '@eventstore/db-client/generated/serverfeatures_pb.js';
import featuresService from '@eventstore/db-client/generated/serverfeatures_grpc_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import type { Empty } from '@eventstore/db-client/generated/shared_pb.js';
import type { Status } from '@eventstore/db-client/generated/status_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import type {
  AppendReq,
  AppendResp,
  BatchAppendReq,
  BatchAppendResp,
  DeleteReq,
  DeleteResp,
  ReadReq,
  ReadResp,
  TombstoneReq,
  TombstoneResp,
} from '@eventstore/db-client/generated/streams_pb.js';
import streamsService from '@eventstore/db-client/generated/streams_grpc_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import { randomUUID } from 'node:crypto';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server as NetServer, Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Log } from './log.js';
import type { AppendOutcome, Expectation, Proposed } from './log.js';
import * as wire from './wire.js';

/**
 * What goes wrong with an append. `before`: it is not written, `after`: it is.
 * `cut`: the connection is reset. `silence`: no answer ever. `unavailable`, `reset`, `timeout`, `not-ready`, `unknown`:
 * that answer. `wrong-version`: refused although nothing is wrong, or was written. `end-stream`: the server ends the
 * batch stream without an error and never answers. A delay comes before the write; so does what an append to that stream is held for.
 */
export type AppendFault =
  | 'cut-before'
  | 'cut-after'
  | 'silence-before'
  | 'silence-after'
  | 'unavailable-before'
  | 'unavailable-after'
  | 'reset-before'
  | 'reset-after'
  | 'timeout-after'
  | 'not-ready-before'
  | 'wrong-version-after'
  | 'end-stream-before'
  | 'end-stream-after'
  | { readonly delayMs: number }
  | { readonly heldUntil: Promise<unknown>; readonly stream: string };

/** How a live subscription is dropped. */
export type Drop = 'unavailable' | 'cancelled' | 'reset' | 'end' | 'access-denied' | 'invalid-position';

export interface Member {
  readonly host: string;
  readonly port: number;
  readonly leader: boolean;
  /** False for one that the others remember and cannot reach. */
  readonly alive?: boolean;
}

/**
 * Whose behaviour it shows where servers differ. 23.10 resumes behind the first event at or after a position, says
 * nothing when that lies inside a record, and sends checkpoints at the position of the event that comes next. 24.10
 * resumes where it is told, refuses a position inside a record, and sends the checkpoint (-1, -1) when a subscription
 * from the start finds nothing.
 */
export type ServerVersion = '23.10' | '24.10';

/** What the user of the client may not do: `login` fails every call, as a wrong password does. */
export type Denied = 'login' | 'append' | 'read-all' | 'read-stream';

/** How many filtered-out events the server passes before it says how far it is (24.10: 32 times the multiplier). */
const CHECKPOINT_WINDOW = 32;

/**
 * An EventStoreDB as its clients see it, in this process: the gRPC services Streams, ServerFeatures and Gossip over a
 * log in memory, behind a TCP relay so that connections can be cut. It does what runs against servers of both versions
 * have shown, and elsewhere what their sources say; elections and replication are not in it.
 */
export class EventStoreDouble {
  log: Log;
  /** Faults for the next appends, first come first served. */
  readonly appendFaults: AppendFault[] = [];
  /** How many of the next reads of a stream fail as unavailable, and after how many events each. */
  readonly readFaults: { readonly afterEvents: number; readonly how: 'unavailable' | 'silence' }[] = [];
  /** Starts of subscriptions to everything, as the client asked: a position, 'start' or 'end'. */
  readonly allReads: (bigint | 'start' | 'end')[] = [];
  /** How many reads of a stream have reached the server. */
  streamReads = 0;
  /** How many appends have reached the server whole, and over which path. */
  readonly appends = { batch: 0, classic: 0 };
  /** How many events have reached the server with appends, whole or not; and messages of a batch stream. */
  proposed = 0;
  batchMessages = 0;
  /** How many events have been handed to the network by subscriptions. */
  sent = 0;
  /** Positions of the checkpoints that subscriptions were sent; `wire.NO_POSITION` for (-1, -1). */
  readonly checkpoints: string[] = [];
  readonly denied = new Set<Denied>();
  version: ServerVersion = '24.10';
  /** `MaxAppendSize`: data, metadata and types of an append. */
  maxAppendBytes = 1024 * 1024;
  /** `MaxAppendEventSize` of KurrentDB: data, metadata and type of one event. */
  maxEventBytes = 16 * 1024 * 1024;
  /** gRPC's own limit on a message: a larger one ends the call with RESOURCE_EXHAUSTED. */
  maxMessageBytes = 17 * 1024 * 1024;
  members: readonly Member[] = [];
  /** When set, this node sends whoever needs the leader there, or says that it knows of none. */
  leader: { host: string; port: number } | 'unknown' | undefined;
  positionsInStreamReads = true;
  positionsInAppends = true;
  /** True makes subscriptions start with the event at their position instead of after it. */
  subscriptionsInclude = false;
  /** False makes it a server that does not know the batch path. */
  batchPath = true;
  featuresFail: grpc.status | undefined;
  /** How often it was asked what it can do, and who its members are. */
  featuresAsked = 0;
  gossipAsked = 0;
  readonly #drops = new Set<(drop: Drop) => void>();
  readonly #live = new Set<grpc.ServerWritableStream<ReadReq, ReadResp>>();
  readonly #server = new grpc.Server({ 'grpc.max_receive_message_length': 17 * 1024 * 1024 });
  readonly #sockets = new Set<Socket>();
  /** Their other ends, inside. */
  readonly #inside = new Set<Socket>();
  /** While it hangs: lets those in who have connected meanwhile. */
  #held: (() => void)[] | undefined;
  #relay: NetServer | undefined;
  #inner = 0;
  #port = 0;
  #stalled = false;

  /** @param log of another double, for a second node of the same cluster */
  private constructor(log: Log) {
    this.log = log;
  }

  static async start(log = new Log()): Promise<EventStoreDouble> {
    const double = new EventStoreDouble(log);
    await double.#listen();
    return double;
  }

  get port(): number {
    return this.#port;
  }

  /** What a client is given to connect. */
  get connectionString(): string {
    return `esdb://127.0.0.1:${this.#port}?tls=false`;
  }

  /** Connected sockets. */
  get connections(): number {
    return this.#sockets.size;
  }

  get subscriptions(): number {
    return this.#drops.size;
  }

  dropSubscriptions(drop: Drop): void {
    for (const each of [...this.#drops]) each(drop);
  }

  /** Tells every subscription that it has fallen behind, and that it has caught up again. */
  fallBehind(): void {
    for (const call of this.#live) {
      call.write(new streams.ReadResp().setFellBehind(new streams.ReadResp.FellBehind()));
      call.write(new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp()));
    }
  }

  /** Resets every connection; new ones are taken. */
  cut(): void {
    for (const socket of [...this.#sockets]) socket.resetAndDestroy();
  }

  /** Nothing gets through in either direction any more, and nobody is told. */
  stall(): void {
    this.#stalled = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** Does nothing any more, as a stopped process: its kernel takes connections and bytes, until `goOn`. */
  hang(): void {
    this.#held ??= [];
    for (const socket of [...this.#sockets, ...this.#inside]) socket.pause();
  }

  goOn(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const socket of [...this.#sockets, ...this.#inside]) socket.resume();
    for (const letIn of held) letIn();
  }

  /** Comes back, on the same port, with what a backup has: a log that was copied before. */
  async restore(backup: Log): Promise<void> {
    await this.down();
    this.dropSubscriptions('unavailable');
    this.log = backup;
    await this.up();
  }

  /** Resets every connection and takes no new ones until `up`. */
  async down(): Promise<void> {
    const relay = this.#relay;
    this.#relay = undefined;
    this.cut();
    if (relay !== undefined) await new Promise((resolve) => relay.close(resolve));
  }

  /** Takes connections again, on the same port. */
  async up(): Promise<void> {
    this.#stalled = false;
    await this.#openRelay();
  }

  async stop(): Promise<void> {
    await this.down();
    this.#server.forceShutdown();
  }

  async #listen(): Promise<void> {
    this.#server.addService(streamsService.StreamsService, {
      read: (call: grpc.ServerWritableStream<ReadReq, ReadResp>) => void this.#read(call),
      append: (call: grpc.ServerReadableStream<AppendReq, AppendResp>, done: grpc.sendUnaryData<AppendResp>) =>
        this.#append(call, done),
      batchAppend: (call: grpc.ServerDuplexStream<BatchAppendReq, BatchAppendResp>) => this.#batchAppend(call),
      tombstone: (call: grpc.ServerUnaryCall<TombstoneReq, TombstoneResp>, done: grpc.sendUnaryData<TombstoneResp>) =>
        this.#tombstone(call, done),
      delete: (_: grpc.ServerUnaryCall<DeleteReq, DeleteResp>, done: grpc.sendUnaryData<DeleteResp>) =>
        done(wire.serverError(grpc.status.UNIMPLEMENTED, 'soft deletes are none of our business')),
    });
    this.#server.addService(featuresService.ServerFeaturesService, {
      getSupportedMethods: (
        _: grpc.ServerUnaryCall<Empty, unknown>,
        done: grpc.sendUnaryData<InstanceType<typeof features.SupportedMethods>>,
      ) => {
        this.featuresAsked++;
        if (this.featuresFail !== undefined) return done(wire.serverError(this.featuresFail, 'no features today'));
        done(null, this.#features());
      },
    });
    this.#server.addService(gossipService.GossipService, {
      read: (
        _: grpc.ServerUnaryCall<Empty, unknown>,
        done: grpc.sendUnaryData<InstanceType<typeof gossip.ClusterInfo>>,
      ) => {
        this.gossipAsked++;
        done(null, this.#clusterInfo());
      },
    });
    this.#inner = await new Promise<number>((resolve, reject) =>
      this.#server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) =>
        error === null ? resolve(port) : reject(error),
      ),
    );
    await this.#openRelay();
  }

  async #openRelay(): Promise<void> {
    const letIn = (outside: Socket): void => {
      const inside = connect(this.#inner, '127.0.0.1');
      for (const socket of [outside, inside]) {
        socket.setNoDelay(true);
        socket.on('error', () => undefined);
      }
      this.#inside.add(inside);
      outside.on('close', () => inside.destroy());
      inside.on('close', () => {
        this.#inside.delete(inside);
        outside.destroy();
      });
      outside.on('data', (bytes) => this.#stalled || inside.write(bytes));
      inside.on('data', (bytes) => {
        // The client's slowness must reach the server, or back-pressure could not be seen here.
        if (!this.#stalled && !outside.write(bytes)) inside.pause();
      });
      outside.on('drain', () => this.#held ?? inside.resume());
    };
    const relay = createServer({ pauseOnConnect: true }, (outside) => {
      outside.on('error', () => undefined);
      this.#sockets.add(outside);
      outside.on('close', () => this.#sockets.delete(outside));
      const enter = (): void => {
        letIn(outside);
        outside.resume();
      };
      if (this.#held) this.#held.push(enter);
      else enter();
    });
    await new Promise<void>((resolve, reject) => {
      relay.once('error', reject);
      relay.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (relay.address() as AddressInfo).port;
    this.#relay = relay;
  }

  #features(): InstanceType<typeof features.SupportedMethods> {
    const supported = new features.SupportedMethods().setEventStoreServerVersion(`${this.version}.0-double`);
    // The names are in lower case, as the server sends them: the client compares them so.
    const methods = ['append', 'read', 'tombstone', ...(this.batchPath ? ['batchappend'] : [])];
    for (const name of methods) {
      supported.addMethods(
        new features.SupportedMethod().setServiceName('event_store.client.streams.streams').setMethodName(name),
      );
    }
    return supported;
  }

  #clusterInfo(): InstanceType<typeof gossip.ClusterInfo> {
    const info = new gossip.ClusterInfo();
    for (const { host, port, leader, alive = true } of this.members) {
      const { LEADER, FOLLOWER } = gossip.MemberInfo.VNodeState;
      info.addMembers(
        new gossip.MemberInfo()
          .setInstanceId(new shared.UUID().setString(randomUUID()))
          .setTimeStamp('0')
          .setIsAlive(alive)
          .setState(leader ? LEADER : FOLLOWER)
          .setHttpEndPoint(new gossip.EndPoint().setAddress(host).setPort(port)),
      );
    }
    return info;
  }

  /** Why a call is not handled at all: its user may not do that, or this node is not the leader. */
  #refusal(metadata: grpc.Metadata, what: Denied): Partial<grpc.ServiceError> | undefined {
    if (this.denied.has('login')) return wire.serverError(grpc.status.UNAUTHENTICATED, 'Bad HTTP response: 401');
    if (this.denied.has(what)) return wire.accessDeniedError();
    const needed = metadata.get('requires-leader')[0]?.toString() === 'true';
    if (!needed || this.leader === undefined) return undefined;
    return this.leader === 'unknown' ? wire.noLeaderError() : wire.notLeaderError(this.leader);
  }

  #append(call: grpc.ServerReadableStream<AppendReq, AppendResp>, done: grpc.sendUnaryData<AppendResp>): void {
    let options: AppendReq.Options | undefined;
    const events: Proposed[] = [];
    call.on('data', (request: AppendReq) => {
      options ??= request.getOptions();
      const message = request.getProposedMessage();
      if (message === undefined) return;
      events.push(wire.proposed(message));
      this.proposed++;
    });
    call.on('error', () => undefined);
    const whole = (): void => {
      this.appends.classic++;
      const refusal = this.#refusal(call.metadata, 'append');
      if (refusal !== undefined) return done(refusal);
      const stream = wire.streamName(options?.getStreamIdentifier());
      const expected = wire.expectation(options);
      this.#withFault(stream, events, expected, {
        outcome: (outcome) => {
          if (outcome.kind === 'deleted') done(wire.streamDeletedError(stream));
          else done(null, this.#appendResponse(outcome, expected));
        },
        fail: (error) => done(error),
        status: ({ status, error }) => (status.getMessage() === 'Timeout' ? done(timeoutError()) : done(error)),
        end: () => this.cut(),
      });
    };
    call.on('end', () => {
      // A call that is cut off ends too, and says only then that it was cancelled. A server writes nothing of it.
      setImmediate(() => call.cancelled || whole());
    });
  }

  #appendResponse(
    outcome: Exclude<AppendOutcome, { kind: 'deleted' }>,
    expected: Expectation,
  ): InstanceType<typeof streams.AppendResp> {
    if (outcome.kind === 'wrong') {
      const wrong = new streams.AppendResp.WrongExpectedVersion();
      if (outcome.current === undefined) wrong.setCurrentNoStream(new shared.Empty());
      else wrong.setCurrentRevision(String(outcome.current));
      // As the server's default case has it: "no stream" is -1, unsigned.
      if (typeof expected === 'bigint') wrong.setExpectedRevision(String(expected));
      else if (expected === 'no_stream') wrong.setExpectedRevision(wire.NO_POSITION);
      else if (expected === 'stream_exists') wrong.setExpectedStreamExists(new shared.Empty());
      else wrong.setExpectedAny(new shared.Empty());
      return new streams.AppendResp().setWrongExpectedVersion(wrong);
    }
    const success = new streams.AppendResp.Success().setCurrentRevision(String(outcome.revision));
    if (this.positionsInAppends) {
      const position = String(outcome.position);
      success.setPosition(new streams.AppendResp.Position().setCommitPosition(position).setPreparePosition(position));
    } else {
      success.setNoPosition(new shared.Empty());
    }
    return new streams.AppendResp().setSuccess(success);
  }

  #batchAppend(call: grpc.ServerDuplexStream<BatchAppendReq, BatchAppendResp>): void {
    const open = new Map<string, { options: BatchAppendReq.Options | undefined; events: Proposed[] }>();
    call.on('error', () => undefined);
    call.on('end', () => call.end());
    call.on('data', (request: BatchAppendReq) => {
      this.batchMessages++;
      const correlation = wire.uuidText(request.getCorrelationId());
      const append = open.get(correlation) ?? { options: request.getOptions(), events: [] };
      open.set(correlation, append);
      append.events.push(...request.getProposedMessagesList().map(wire.proposed));
      this.proposed += request.getProposedMessagesList().length;
      if (!request.getIsFinal()) return;
      open.delete(correlation);
      this.appends.batch++;
      const identifier = append.options?.getStreamIdentifier();
      const stream = wire.streamName(identifier);
      const expected = wire.batchExpectation(append.options);
      const answer = (): BatchAppendResp =>
        new streams.BatchAppendResp().setCorrelationId(request.getCorrelationId()).setStreamIdentifier(identifier);
      const refuse = (status: Status): void => void call.write(answer().setError(status));
      if (this.denied.has('append')) return refuse(wire.accessDenied());
      const refusal = this.#refusal(call.metadata, 'append');
      if (refusal?.details === wire.NO_LEADER) return refuse(wire.notHandled(wire.NO_LEADER));
      if (refusal !== undefined) return void call.emit('error', refusal);

      this.#withFault(stream, append.events, expected, {
        outcome: (outcome) => {
          if (outcome.kind === 'deleted') {
            const detail = new shared.StreamDeleted().setStreamIdentifier(identifier).serializeBinary();
            refuse(wire.batchError(code.Code.NOT_FOUND, 'StreamDeleted', 'event_store.client.StreamDeleted', detail));
          } else if (outcome.kind === 'wrong') {
            refuse(wire.wrongVersion(expected, outcome.current));
          } else {
            const success = new streams.BatchAppendResp.Success().setCurrentRevision(String(outcome.revision));
            const position = String(outcome.position);
            if (this.positionsInAppends) {
              success.setPosition(
                new shared.AllStreamPosition().setCommitPosition(position).setPreparePosition(position),
              );
            } else {
              success.setNoPosition(new empty.Empty());
            }
            call.write(answer().setSuccess(success));
          }
        },
        fail: (error) => void call.emit('error', error),
        status: ({ status }) => refuse(status),
        end: () => call.end(),
      });
    });
  }

  #withFault(
    stream: string,
    events: readonly Proposed[],
    expected: Expectation,
    reply: {
      outcome(outcome: AppendOutcome): void;
      fail(error: Partial<grpc.ServiceError>): void;
      status(failure: { status: Status; error: Partial<grpc.ServiceError> }): void;
      end(): void;
    },
  ): void {
    const next = this.appendFaults.findIndex(
      (one) => typeof one !== 'object' || !('stream' in one) || one.stream === stream,
    );
    const [fault] = next < 0 ? [] : this.appendFaults.splice(next, 1);
    const size = events.reduce(
      (sum, { type, data, metadata }) => sum + 2 * type.length + data.length + metadata.length,
      0,
    );
    if (size > this.maxMessageBytes) {
      return reply.fail(wire.serverError(grpc.status.RESOURCE_EXHAUSTED, MESSAGE_TOO_LARGE));
    }
    const large = events.find(({ type, data, metadata }) => {
      return type.length + data.length + metadata.length > this.maxEventBytes;
    });
    if (large !== undefined && size <= this.maxAppendBytes) {
      const limit = this.maxEventBytes;
      const text = `Event with Id: ${large.id}, Size: ${size}, exceeds Maximum Append Event Size of ${limit}.`;
      const error = wire.serverError(grpc.status.INVALID_ARGUMENT, text, {
        exception: 'maximum-append-event-size-exceeded',
        'maximum-append-event-size': String(limit),
      });
      return reply.status({ status: wire.oversizeEvent(), error });
    }
    if (size > this.maxAppendBytes) {
      const limit = this.maxAppendBytes;
      const error = wire.serverError(grpc.status.INVALID_ARGUMENT, `Maximum Append Size of ${limit} Exceeded.`, {
        exception: 'maximum-append-size-exceeded',
        'maximum-append-size': String(limit),
      });
      return reply.status({ status: wire.oversize(limit), error });
    }
    const write = (): AppendOutcome => this.log.append(stream, events, expected);
    if (fault === undefined) return reply.outcome(write());
    if (typeof fault === 'object') {
      const held = 'delayMs' in fault ? pause(fault.delayMs) : fault.heldUntil;
      return void held.catch(() => undefined).then(() => reply.outcome(write()));
    }

    const [, how, when] = /^(.*)-(before|after)$/.exec(fault) ?? [];
    if (when === 'after') write();
    switch (how) {
      case 'cut':
        return this.cut();
      case 'unavailable':
        return reply.fail(wire.serverError(grpc.status.UNAVAILABLE, 'the server goes away'));
      case 'reset':
        return reply.fail(wire.serverError(grpc.status.INTERNAL, 'Call ended without gRPC status'));
      case 'timeout':
        return reply.status({ status: wire.timeout(), error: timeoutError() });
      case 'not-ready':
        return reply.status({
          status: wire.notHandled('Server Is Not Ready'),
          error: wire.serverError(grpc.status.UNAVAILABLE, 'Server Is Not Ready'),
        });
      case 'wrong-version':
        return reply.outcome({ kind: 'wrong', current: this.#current(stream) });
      case 'end-stream':
        return reply.end();
    }
  }

  #current(stream: string): bigint | undefined {
    const events = this.log.read(stream);
    return events === undefined || events === 'deleted' ? undefined : events.at(-1)?.revision;
  }

  #tombstone(call: grpc.ServerUnaryCall<TombstoneReq, TombstoneResp>, done: grpc.sendUnaryData<TombstoneResp>): void {
    const refusal = this.#refusal(call.metadata, 'append');
    if (refusal !== undefined) return done(refusal);
    const stream = wire.streamName(call.request.getOptions()?.getStreamIdentifier());
    const outcome = this.log.tombstone(stream);
    if (outcome === 'deleted') return done(wire.streamDeletedError(stream));
    const position = String(outcome);
    done(
      null,
      new streams.TombstoneResp().setPosition(
        new streams.TombstoneResp.Position().setCommitPosition(position).setPreparePosition(position),
      ),
    );
  }

  async #read(call: grpc.ServerWritableStream<ReadReq, ReadResp>): Promise<void> {
    call.on('error', () => undefined);
    const options = call.request.getOptions();
    const refusal = this.#refusal(call.metadata, options?.hasAll() ? 'read-all' : 'read-stream');
    if (refusal !== undefined || options === undefined) return void call.emit('error', refusal);
    if (options.hasSubscription()) return this.#subscribe(call, options);
    return options.hasAll() ? this.#readAll(call, options) : this.#readStream(call, options);
  }

  async #readStream(call: grpc.ServerWritableStream<ReadReq, ReadResp>, options: ReadReq.Options): Promise<void> {
    const fault = this.readFaults.shift();
    this.streamReads++;
    const from = options.getStream();
    const stream = wire.streamName(from?.getStreamIdentifier());
    const events = this.log.read(stream);
    if (events === 'deleted') return void call.emit('error', wire.streamDeletedError(stream));
    if (events === undefined) {
      const missing = new streams.ReadResp.StreamNotFound().setStreamIdentifier(from?.getStreamIdentifier());
      call.write(new streams.ReadResp().setStreamNotFound(missing));
      call.end();
      return;
    }
    const backwards = options.getReadDirection() === streams.ReadReq.Options.ReadDirection.BACKWARDS;
    const start = from?.hasRevision() ? BigInt(from.getRevision()) : undefined;
    const ordered = backwards
      ? events.filter(({ revision }) => start === undefined || revision <= start).reverse()
      : events.filter(({ revision }) => start === undefined || revision >= start);
    let sent = 0;
    for (const event of ordered.slice(0, Number(options.getCount()))) {
      if (sent++ === fault?.afterEvents) break;
      if (!(await write(call, wire.eventResponse(event, this.positionsInStreamReads)))) return;
    }
    if (fault?.how === 'silence') return;
    if (fault === undefined) call.end();
    else call.emit('error', wire.serverError(grpc.status.UNAVAILABLE, 'the server goes away'));
  }

  async #readAll(call: grpc.ServerWritableStream<ReadReq, ReadResp>, options: ReadReq.Options): Promise<void> {
    const all = options.getAll();
    const start = all?.hasPosition() ? BigInt(all.getPosition()?.getCommitPosition() ?? 0) : undefined;
    if (start !== undefined && this.log.isInsideRecord(start)) {
      if (this.version === '23.10') return void call.end();
      return void call.emit('error', insideRecord(start));
    }
    const backwards = options.getReadDirection() === streams.ReadReq.Options.ReadDirection.BACKWARDS;
    const matches = wire.wanted(options.getFilter());
    const ordered = backwards
      ? // The server reads backwards from what lies before the position it is given.
        this.log.events.filter(({ position }) => start === undefined || position < start).reverse()
      : this.log.events.filter(({ position }) => start === undefined || position >= start);
    for (const event of ordered.filter(matches).slice(0, Number(options.getCount()))) {
      if (!(await write(call, wire.eventResponse(event)))) return;
    }
    call.end();
  }

  async #subscribe(call: grpc.ServerWritableStream<ReadReq, ReadResp>, options: ReadReq.Options): Promise<void> {
    const all = options.getAll();
    const start = all?.hasPosition() ? BigInt(all.getPosition()?.getCommitPosition() ?? 0) : undefined;
    this.allReads.push(start ?? (all?.hasEnd() ? 'end' : 'start'));
    const gone = new AbortController();
    const drop = (how: Drop): void => {
      gone.abort();
      this.#drops.delete(drop);
      if (how === 'end') call.end();
      else call.emit('error', DROPS[how]);
    };
    this.#drops.add(drop);
    call.on('cancelled', () => {
      this.#drops.delete(drop);
      gone.abort();
    });

    const matches = wire.wanted(options.getFilter());
    const window = CHECKPOINT_WINDOW * (options.getFilter()?.getCheckpointintervalmultiplier() ?? 1);
    await write(
      call,
      new streams.ReadResp().setConfirmation(
        new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId(randomUUID()),
      ),
    );
    if (start !== undefined && this.log.isInsideRecord(start)) {
      if (this.version === '24.10') drop('invalid-position');
      return;
    }
    const checkpoint = async (position: bigint | string): Promise<void> => {
      const at = String(position);
      this.checkpoints.push(at);
      await write(
        call,
        new streams.ReadResp().setCheckpoint(
          new streams.ReadResp.Checkpoint().setCommitPosition(at).setPreparePosition(at),
        ),
      );
    };
    let after = this.#firstBehind(start) ?? (all?.hasEnd() ? (this.log.events.at(-1)?.position ?? -1n) : -1n);
    const isFromStart = start === undefined && !all?.hasEnd();
    let passed = 0;
    let found = false;
    let live = false;
    let unmarked = 0;
    while (!gone.signal.aborted) {
      const page = this.log.after(after, 100);
      if (page.length === 0) {
        if (!live) {
          await write(call, new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp()));
          if (this.version === '24.10' && isFromStart && !found) await checkpoint(wire.NO_POSITION);
        }
        if (this.version === '23.10' && unmarked > 0) await checkpoint(this.log.end);
        unmarked = 0;
        live = true;
        this.#live.add(call);
        await this.log.change(gone.signal);
        this.#live.delete(call);
      }
      for (const event of page) {
        if (gone.signal.aborted) return;
        after = event.position;
        if (matches(event)) {
          found = true;
          this.sent++;
          if (!(await write(call, wire.eventResponse(event)))) return;
        } else {
          unmarked++;
        }
        if (++passed % window === 0) await checkpoint(event.position);
      }
    }
  }

  /** The position behind which a subscription begins that is to begin behind another. */
  #firstBehind(start: bigint | undefined): bigint | undefined {
    if (start === undefined || this.subscriptionsInclude) return start === undefined ? undefined : start - 1n;
    return this.version === '23.10' ? (this.log.after(start - 1n, 1)[0]?.position ?? start) : start;
  }
}

const MESSAGE_TOO_LARGE = 'Received message exceeds the maximum configured message size.';

const DROPS: Record<Exclude<Drop, 'end'>, Partial<grpc.ServiceError>> = {
  unavailable: wire.serverError(grpc.status.UNAVAILABLE, 'the server goes away'),
  cancelled: wire.serverError(grpc.status.CANCELLED, 'the server has cancelled the call'),
  reset: wire.serverError(grpc.status.INTERNAL, 'Received RST_STREAM with code 2'),
  'access-denied': wire.accessDeniedError(),
  'invalid-position': insideRecord(),
};

function timeoutError(): Partial<grpc.ServiceError> {
  return wire.serverError(grpc.status.ABORTED, 'Operation timed out: the write has timed out');
}

function insideRecord(position?: bigint): Partial<grpc.ServiceError> {
  return wire.serverError(grpc.status.INVALID_ARGUMENT, `'${position ?? 'it'}' is not a valid position`);
}

/** Writes when the client takes it; false when the client is gone. */
async function write(call: grpc.ServerWritableStream<ReadReq, ReadResp>, response: ReadResp): Promise<boolean> {
  if (call.cancelled || call.destroyed) return false;
  if (call.write(response)) return true;
  return new Promise((resolve) => {
    const settle = (going: boolean) => (): void => {
      call.off('drain', drained);
      call.off('cancelled', stopped);
      call.off('close', stopped);
      resolve(going);
    };
    const drained = settle(true);
    const stopped = settle(false);
    call.once('drain', drained);
    call.once('cancelled', stopped);
    call.once('close', stopped);
  });
}
