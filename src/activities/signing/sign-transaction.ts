import { signingKeyOf } from '../../domain/organization/signing-keys.js';
import { OneOf, Text, Uuid } from '../../wire/fields.js';
import { defineActivity } from '../define-activity.js';
import { checkStillSignsWith, signAll, signingPolicy, signWithAbout } from './signing-params.js';
import {
  readTransaction,
  transactionAhead,
  transactionContent,
  transactionResources,
  transactionTypes,
  type TransactionType,
} from './transaction-params.js';

class TransactionParams {
  @Text({
    min: 1,
    max: 2_000_000,
    about:
      'In hexadecimal (with or without 0x, any case): the unsigned transaction in RLP (Ethereum); the serialized transaction or ' +
      'its message (Solana); `raw_data` (Tron); a version 0 PSBT (Bitcoin).',
  })
  unsignedTransaction!: string;

  @OneOf(transactionTypes, { about: 'Its chain. TRANSACTION_TYPE_TEMPO is refused.' })
  type!: TransactionType;
}

class SignTransactionIntent extends TransactionParams {
  @Uuid({ about: 'The private key that signs.' })
  privateKeyId!: string;
}

class SignTransactionIntentV2 extends TransactionParams {
  @Text({ min: 1, max: 256, about: signWithAbout })
  signWith!: string;
}

class SignTransactionResult {
  @Text({
    max: 4_000_000,
    about: 'In lower-case hexadecimal without 0x. For Bitcoin, the PSBT with its signatures, not finalized.',
  })
  signedTransaction!: string;
}

/** Signs only transactions that it can decode, so that policies can refer to their contents. */
export const signTransaction = defineActivity({
  type: 'ACTIVITY_TYPE_SIGN_TRANSACTION_V2',
  resultKey: 'signTransactionResult',
  summary: 'Signs an Ethereum, Solana, Tron or Bitcoin transaction.',
  intent: SignTransactionIntentV2,
  result: SignTransactionResult,
  olderVersions: [
    {
      type: 'ACTIVITY_TYPE_SIGN_TRANSACTION',
      intent: SignTransactionIntent,
      lift: ({ privateKeyId, ...rest }: SignTransactionIntent): SignTransactionIntentV2 => ({
        ...rest,
        signWith: privateKeyId,
      }),
    },
  ],
  policy: signingPolicy,
  params: { type: { type: { kind: 'string' }, literals: transactionTypes, from: ({ type }) => type } },
  resources: transactionResources,
  content: transactionContent,
  ahead: transactionAhead,

  check(intent, organization) {
    readTransaction(intent, organization);
  },

  async sign(intent, keyring, { organization }) {
    const { key, transaction } = readTransaction(intent, organization);
    const signatures = await signAll(keyring, organization.organizationId, key, transaction.parts);
    return { key, signedTransaction: transaction.assemble(signatures) };
  },

  recall: ({ signWith }, recorded, organization) => ({
    key: signingKeyOf(organization, signWith),
    signedTransaction: recorded.result.signedTransaction,
  }),

  decide({ signWith }, { organization }, { key, signedTransaction }) {
    checkStillSignsWith(organization, signWith, key);
    return { events: [], result: { signedTransaction } };
  },
});
