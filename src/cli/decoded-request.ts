import { activities } from '../activities/index.js';
import type { ActivityClient, ResponseOf } from '../client/activity-client.js';
import { buildRegistry, newestIntent } from '../decide/registry.js';
import { CoordinatorError } from '../domain/errors.js';
import { decodedOf } from '../domain/policy/decoded.js';
import type { Decoded, DecodedFact } from '../domain/policy/decoded/account.js';
import { unreadable } from '../domain/policy/types.js';
import type { UploadedInterface } from '../transactions/reading.js';
import { validateParameters } from '../wire/validate.js';
import { wholeList } from './list-pages.js';
import type { SignedRequest } from './signed-request.js';

/** One transaction or payload, decoded from the signed body by the code that decodes it for policies. */
export interface DecodedRequest extends Decoded {
  /** What can only be decoded with contract interfaces, which the coordinator returned. */
  readonly byInterfaces: readonly DecodedFact[];
}

const { versions } = buildRegistry(activities);

/** Decodes what a verified request would sign; undefined if it signs nothing. */
export async function decodedRequest(
  client: ActivityClient,
  request: SignedRequest,
): Promise<readonly DecodedRequest[] | undefined> {
  const decoded = decode(request, []);
  const isWhole = decoded?.every(({ notDecoded }) => notDecoded === undefined) ?? true;
  const withInterfaces = isWhole ? [] : (decode(request, await interfacesOf(client)) ?? []);
  return decoded?.map((one) => {
    const known = new Set(one.facts.map(textOf));
    const { facts = [] } = withInterfaces.find(({ payload }) => payload === one.payload) ?? {};
    return { ...one, byInterfaces: facts.filter((fact) => !known.has(textOf(fact))) };
  });
}

const textOf = ({ name, value }: DecodedFact): string => `${name}\n${value}`;

function decode(
  { type, parameters }: SignedRequest,
  interfaces: readonly UploadedInterface[],
): readonly Decoded[] | undefined {
  const version = versions.get(type);
  if (version?.definition.kind !== 'activity' || !version.definition.content) return undefined;
  try {
    const intent = newestIntent(version, validateParameters(version.intent, parameters));
    const { content, texts } = version.definition;
    return decodedOf({ parts: content(intent, interfaces), texts: texts?.(intent) ?? [] });
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    return decodedOf({ resources: unreadable(error.message) });
  }
}

type Uploaded = ResponseOf<'list_smart_contract_interfaces'>['smartContractInterfaces'][number];

async function interfacesOf(client: ActivityClient): Promise<readonly UploadedInterface[]> {
  const [query, member] = ['list_smart_contract_interfaces', 'smartContractInterfaces'];
  const uploaded = await wholeList<Uploaded>(client, query, member, (one) => one.smartContractInterfaceId);
  return uploaded.map(({ type, smartContractAddress, smartContractInterface }) => ({
    address: type.endsWith('_ETHEREUM') ? smartContractAddress.toLowerCase() : smartContractAddress,
    json: smartContractInterface,
  }));
}
