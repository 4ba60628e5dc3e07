import { Writable } from 'node:stream';
import { createCoordinator } from '../../src/app.module.js';
import { readConfig } from '../../src/config.js';
import { derivedId } from '../../src/coordinator/ids.js';
import { NoDelivery } from '../../src/delivery/no-delivery.js';
import { organizationStream, type OrganizationEvent } from '../../src/domain/organization/organization.js';
import { chainEvent, GENESIS_HASH } from '../../src/event-store/chain.js';
import { InMemoryEventStore } from '../../src/event-store/in-memory.js';
import { createLogger } from '../../src/http/logger.js';
import { projectInMemory } from '../../src/read-models/projecting.js';
import { ManualClock, SeededRandomness, startCoordinator, type TestCoordinator } from '../../src/testing/index.js';
import { LocalKeyEncryption } from '../../src/vault/key-encryption.js';
import { refusal, textLike } from './exchange.js';
import { until } from './until.js';

/*
 * A policy that compares with what nothing can be says nothing, and nobody sees that a DENY is silent: it is refused when it
 * is written, and what a DENY names cannot be deleted under it.
 */

let coordinator: TestCoordinator;
const nobody = '00000000-0000-4000-8000-000000000000';

beforeAll(async () => {
  coordinator = await startCoordinator({ seed: 'known literals' });
});

afterAll(() => coordinator.close());

async function result<Result>(type: string, parameters: object, key: string): Promise<Result> {
  return (await coordinator.client.submit(`ACTIVITY_TYPE_${type}`, parameters)).result[key] as Result;
}
const newUserTag = async (userTagName: string) =>
  (await result<{ userTagId: string }>('CREATE_USER_TAG', { userTagName, userIds: [] }, 'createUserTagResult'))
    .userTagId;
const deleteUserTag = (userTagId: string) =>
  coordinator.client.submit('ACTIVITY_TYPE_DELETE_USER_TAGS', { userTagIds: [userTagId] });

describe('a policy that compares with what nothing can be is refused, with what was meant', () => {
  const typo = {
    policyName: 'wallets',
    effect: 'EFFECT_DENY',
    notes: '',
    condition: "activity.resource == 'WALLETS'",
  } as const;
  const meant =
    /^invalid policy condition: unknown activity resource `WALLETS`: did you mean `WALLET`\? \(line 1, column 22\)/;

  test('by create_policy and create_policies', async () => {
    const submit = (type: string, parameters: object) =>
      refusal(coordinator.client.submit(`ACTIVITY_TYPE_${type}`, parameters));
    expect(await submit('CREATE_POLICY_V3', typo)).toMatchObject({ status: 400, code: 3, message: textLike(meant) });
    const good = { ...typo, policyName: 'wallet', condition: "activity.resource == 'WALLET'" };
    expect(await submit('CREATE_POLICIES', { policies: [good, typo] })).toMatchObject({
      status: 400,
      message: textLike(/did you mean `WALLET`\?.*\(policies\[1\], `wallets`\)/),
    });
    expect(
      await submit('CREATE_POLICY_V3', {
        ...typo,
        condition: undefined,
        consensus: `approvers.any(user, user.tags.contains('${nobody}'))`,
      }),
    ).toMatchObject({
      status: 400,
      message: textLike(`^invalid policy consensus: unknown user tag \`${nobody}\` \\(line 1`),
    });
  });

  test('by update_policy, which looks only at what it is sent', async () => {
    const tagId = await newUserTag('passing');
    const policyId = await coordinator.createPolicy({
      policyName: 'by tag',
      consensus: `approvers.any(user, user.tags.contains('${tagId}'))`,
    });
    const update = (changes: object) =>
      coordinator.client.submit('ACTIVITY_TYPE_UPDATE_POLICY_V2', { policyId, ...changes });
    expect(await refusal(update({ policyCondition: typo.condition }))).toMatchObject({ message: textLike(meant) });
    // An ALLOW does not hold a tag: without it, it allows nothing any more.
    await deleteUserTag(tagId);
    expect(await update({ policyName: 'by a tag that is gone' })).toMatchObject({
      status: 'ACTIVITY_STATUS_COMPLETED',
    });
  });
});

describe('what a DENY names cannot be deleted before the policy is changed', () => {
  const denied = async (clauses: object, attempt: () => Promise<unknown>) => {
    const policyName = `denial of ${JSON.stringify(clauses)}`.slice(0, 60);
    const policyId = await coordinator.createPolicy({ policyName, effect: 'EFFECT_DENY', ...clauses });
    expect(await refusal(attempt())).toMatchObject({
      status: 400,
      code: 9,
      message: textLike(`^policy \`${policyId}\` \\(\`.*\`\\) denies by the .*: change or delete it first`),
    });
    await coordinator.client.submit('ACTIVITY_TYPE_DELETE_POLICY', { policyId });
    await attempt();
  };

  test('a user tag', async () => {
    const tagId = await newUserTag('intern');
    await denied({ consensus: `approvers.any(user, user.tags.contains('${tagId}'))` }, () => deleteUserTag(tagId));
  });

  test('a private key tag', async () => {
    const { privateKeyTagId } = await result<{ privateKeyTagId: string }>(
      'CREATE_PRIVATE_KEY_TAG',
      { privateKeyTagName: 'cold', privateKeyIds: [] },
      'createPrivateKeyTagResult',
    );
    await denied({ condition: `private_key.tags.contains('${privateKeyTagId}')` }, () =>
      coordinator.client.submit('ACTIVITY_TYPE_DELETE_PRIVATE_KEY_TAGS', { privateKeyTagIds: [privateKeyTagId] }),
    );
  });

  test('the interface of a contract, unless the DENY is about others', async () => {
    const upload = async (smartContractAddress: string) => {
      const { smartContractInterfaceId } = await result<{ smartContractInterfaceId: string }>(
        'CREATE_SMART_CONTRACT_INTERFACE',
        {
          smartContractAddress,
          smartContractInterface: '[]',
          type: 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM',
          label: smartContractAddress,
        },
        'createSmartContractInterfaceResult',
      );
      return () =>
        coordinator.client.submit('ACTIVITY_TYPE_DELETE_SMART_CONTRACT_INTERFACE', { smartContractInterfaceId });
    };
    const [one, other] = [`0x${'A1'.repeat(20)}`, `0x${'b2'.repeat(20)}`];
    const [deleteOne, deleteOther, deleteThird] = [
      await upload(one),
      await upload(other),
      await upload(`0x${'c3'.repeat(20)}`),
    ];
    const condition = `eth.tx.to == '${one.toLowerCase()}' && eth.tx.contract_call_args['wad'] > 5`;
    await denied({ condition }, async () => {
      // Whichever way this ends, the other one may go.
      await deleteOther().catch(() => undefined);
      return deleteOne();
    });
    expect(await refusal(deleteOther())).toMatchObject({ status: 404 });
    await denied({ condition: "eth.tx.function_name == 'burn'" }, deleteThird);
  });
});

test('a start tells of a stored policy that compares with what nothing can be', async () => {
  const store = new InMemoryEventStore();
  const organizationId = derivedId('organization', 'old');
  const stream = organizationStream(organizationId);
  const typo = { policyId: nobody, policyName: 'wallets', effect: 'EFFECT_DENY', notes: '' } as const;
  const facts: readonly OrganizationEvent[] = [
    { type: 'OrganizationCreated', data: { organizationId, name: 'Old' } },
    { type: 'PolicyCreated', data: { ...typo, condition: "activity.resource == 'WALLETS'" } },
  ];
  let hash = GENESIS_HASH;
  const events = facts.map(({ type, data }, revision) => {
    const id = derivedId(stream, String(revision));
    const metadata = { at: 0, schemaVersion: 1, $correlationId: organizationId, $causationId: id };
    hash = chainEvent(hash, { stream, revision, id, type, data, metadata });
    return { id, type, data, metadata: { ...metadata, hash } };
  });
  await store.append(stream, events, 'no-stream');
  const lines: string[] = [];
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  const randomness = new SeededRandomness('old');
  const old = await createCoordinator(readConfig({ PORT: '0' }), {
    store,
    projecting: projectInMemory(),
    clock: new ManualClock(Date.UTC(2026, 0, 1)),
    randomness,
    delivery: new NoDelivery(),
    keyEncryption: new LocalKeyEncryption([randomness.bytes(32)], randomness),
    logger: createLogger('warn', log),
  });
  try {
    const told = () => lines.find((line) => line.includes('a policy compares with what nothing can be'));
    await until('the typo is told', () => told() !== undefined);
    expect(JSON.parse(told()!)).toMatchObject({
      organizationId,
      policyId: nobody,
      policyName: 'wallets',
      mistake: textLike(/unknown activity resource `WALLETS`: did you mean `WALLET`\?/),
    });
  } finally {
    await old.close();
  }
});
