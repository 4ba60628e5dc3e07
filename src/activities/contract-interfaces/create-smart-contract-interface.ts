import { base58 } from '@scure/base';
import { invalidField } from '../../domain/errors.js';
import { checkNewContractInterface, type ContractInterface } from '../../domain/organization/contract-interfaces.js';
import { Label, OneOf, Text, Uuid } from '../../wire/fields.js';
import { Readings } from '../readings.js';
import type { InterfaceToRead } from '../../transactions/reading.js';
import { defineActivity } from '../define-activity.js';

/** docs/protocol.md, contract interfaces. */
const maxInterfaceLength = 400_000;

class CreateSmartContractInterfaceIntent {
  @Text({ min: 1, max: 64, about: 'Contract address with 0x, in any letter case, or program id in base58.' })
  smartContractAddress!: string;

  @Text({ min: 1, max: maxInterfaceLength, about: 'ABI (a JSON list) or Anchor IDL (a JSON object), as text.' })
  smartContractInterface!: string;

  @OneOf(['SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM', 'SMART_CONTRACT_INTERFACE_TYPE_SOLANA'], {
    about: 'Chain of the contract.',
  })
  type!: ContractInterface['type'];

  @Label({ about: 'A display name.' })
  label!: string;

  @Text({ optional: true, about: 'A free-form note.' })
  notes?: string;
}

class CreateSmartContractInterfaceResult {
  @Uuid()
  smartContractInterfaceId!: string;
}

const readings = new Readings<CreateSmartContractInterfaceIntent, InterfaceToRead>();

function toRead({ type, smartContractInterface: json }: CreateSmartContractInterfaceIntent): InterfaceToRead {
  const isEthereum = type === 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM';
  return { kind: 'interface', type: isEthereum ? 'ETHEREUM' : 'SOLANA', json };
}

/** Uploads the interface of a contract, so that policies can refer to function names and arguments of its calls. */
export const createSmartContractInterface = defineActivity({
  type: 'ACTIVITY_TYPE_CREATE_SMART_CONTRACT_INTERFACE',
  summary: 'Uploads the ABI or IDL of a contract, so that policies can refer to its functions.',
  intent: CreateSmartContractInterfaceIntent,
  result: CreateSmartContractInterfaceResult,
  policy: { resource: 'SMART_CONTRACT_INTERFACE', action: 'CREATE' },

  check(intent, organization, { limits }) {
    const { type, smartContractAddress } = intent;
    const isEthereum = type === 'SMART_CONTRACT_INTERFACE_TYPE_ETHEREUM';
    if (isEthereum) checkEthereumAddress(smartContractAddress);
    else checkProgramId(smartContractAddress);
    checkNewContractInterface(organization, intent, limits);
    readings.of(intent, '', toRead(intent));
  },

  ahead: (intent, _organization, steps) => readings.ahead(intent, '', toRead(intent), steps),

  decide({ smartContractAddress, smartContractInterface, type, label, notes = '' }, { newId }) {
    const smartContractInterfaceId = newId();
    const facts = { smartContractInterfaceId, smartContractAddress, smartContractInterface, type, label, notes };
    return {
      events: [{ type: 'SmartContractInterfaceCreated', data: facts }],
      result: { smartContractInterfaceId },
    };
  },
});

function checkEthereumAddress(address: string): void {
  if (/^0x[0-9a-f]{40}$/i.test(address)) return;
  throw invalidField(
    'parameters.smartContractAddress',
    `\`${address}\` is not an Ethereum address: send 0x and 40 hexadecimal digits`,
  );
}

function checkProgramId(programId: string): void {
  let bytes: Uint8Array | undefined;
  try {
    bytes = base58.decode(programId);
  } catch {
    // Said below.
  }
  if (bytes?.length === 32) return;
  throw invalidField(
    'parameters.smartContractAddress',
    `\`${programId}\` is not a Solana program id: send its 32 bytes in base58`,
  );
}
