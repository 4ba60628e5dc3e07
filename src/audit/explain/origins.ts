import type { OrganizationEvent } from '../../domain/organization/organization.js';
import type { Clause } from '../../domain/policy/types.js';

/** A recorded event: its type, its place in the organization's stream, and its id. */
export interface EventPlace {
  readonly type: string;
  readonly revision: number;
  readonly eventId: string;
}

/**
 * Which event gave everything that policies read the value that it has now. Fed with the events of an organization, in
 * order. It takes some 200 bytes for each of them at most, and what feeds it counts them.
 */
export class Origins {
  private readonly places = new Map<string, EventPlace>();

  /** The last event that set a field, or what it belongs to. */
  of(thing: string, id: string, field?: string): EventPlace | undefined {
    const own = field === undefined ? undefined : this.places.get(keyOf(thing, id, field));
    return own ?? this.places.get(keyOf(thing, id));
  }

  ofClause(policyId: string, clause: Clause): EventPlace | undefined {
    return this.of('policy', policyId, clause);
  }

  ofRootQuorum(): EventPlace | undefined {
    return this.of('root-quorum', '');
  }

  note({ type, data }: OrganizationEvent, place: EventPlace): void {
    switch (type) {
      case 'RootQuorumUpdated':
        return this.set('root-quorum', '', place);
      case 'UserCreated':
        return this.set('user', data.userId, place);
      case 'UserUpdated':
        return this.setFields('user', data.userId, userFields, data, place);
      case 'UserDeleted':
        return this.forget('user', data.userId, Object.values(userFields));
      case 'ApiKeyCreated':
        return this.set('credential', data.apiKeyId, place);
      case 'ApiKeyDeleted':
        return this.forget('credential', data.apiKeyId);
      case 'AuthenticatorCreated':
        return this.set('credential', data.authenticatorId, place);
      case 'AuthenticatorDeleted':
        return this.forget('credential', data.authenticatorId);
      case 'OauthProviderCreated':
        return this.set('credential', data.providerId, place);
      case 'OauthProviderDeleted':
        return this.forget('credential', data.providerId);
      case 'PolicyCreated':
        return this.set('policy', data.policyId, place);
      case 'PolicyUpdated':
        return this.setFields('policy', data.policyId, policyFields, data, place);
      case 'PolicyDeleted':
        return this.forget('policy', data.policyId, Object.values(policyFields));
      case 'WalletCreated':
        return this.set('wallet', data.walletId, place);
      case 'WalletUpdated':
        return this.set('wallet', data.walletId, place, 'label');
      case 'WalletExported':
        return this.set('wallet', data.walletId, place, 'exported');
      case 'WalletDeleted':
        return this.forget('wallet', data.walletId, ['label', 'exported']);
      case 'WalletAccountsCreated':
        for (const { address } of data.accounts) this.set('wallet-account', address, place);
        return;
      case 'PrivateKeyCreated':
        return this.set('private-key', data.privateKeyId, place);
      case 'PrivateKeyUpdated':
        return this.set('private-key', data.privateKeyId, place, 'tags');
      case 'PrivateKeyExported':
        return this.set('private-key', data.privateKeyId, place, 'exported');
      case 'PrivateKeyDeleted':
        return this.forget('private-key', data.privateKeyId, ['tags', 'exported']);
      default:
        return;
    }
  }

  private set(thing: string, id: string, place: EventPlace, field?: string): void {
    this.places.set(keyOf(thing, id, field), place);
  }

  /** Of an update, only the fields that it has. */
  private setFields(
    thing: string,
    id: string,
    fields: Readonly<Record<string, string>>,
    data: object,
    place: EventPlace,
  ): void {
    for (const [member, field] of Object.entries(fields)) {
      if (Object.hasOwn(data, member)) this.set(thing, id, place, field);
    }
  }

  private forget(thing: string, id: string, fields: readonly string[] = []): void {
    this.places.delete(keyOf(thing, id));
    for (const field of fields) this.places.delete(keyOf(thing, id, field));
  }
}

/** Members of events, and the fields of the policy language that they set. */
const userFields = { userName: 'alias', userEmail: 'email', userTags: 'tags' };
const policyFields = { effect: 'effect', condition: 'condition', consensus: 'consensus', time: 'time' };

function keyOf(thing: string, id: string, field = ''): string {
  return `${thing} ${id} ${field}`;
}
