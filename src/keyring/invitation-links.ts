import { Inject, Injectable } from '@nestjs/common';
import { ADDRESSES, type Addresses } from '../ports/addresses.js';
import { RANDOMNESS, type Randomness } from '../ports/randomness.js';
import { generatePrivateKey, publicKeyOf } from './curves.js';

/** What a page must know before anyone has logged in. */
interface Invited {
  readonly organizationId: string;
  readonly invitationId: string;
  readonly receiverUserName: string;
  readonly accessType: string;
}

/** Links of invitations. Each contains a P-256 key that was created for it and is kept nowhere else. */
@Injectable()
export class InvitationLinks {
  constructor(
    @Inject(RANDOMNESS) private readonly randomness: Randomness,
    @Inject(ADDRESSES) private readonly addresses: Pick<Addresses, 'invitations'>,
  ) {}

  /**
   * A link, and the public part of its key (compressed, hex). The key is in the fragment, which browsers neither send
   * to a server nor put in a Referer (RFC 3986, section 3.5).
   */
  newLink({ organizationId, invitationId, receiverUserName: userName, accessType }: Invited) {
    const key = generatePrivateKey('CURVE_P256', (count) => this.randomness.bytes(count));
    try {
      const publicKey = publicKeyOf('CURVE_P256', key).toString('hex');
      const privateKey = key.toString('hex');
      const parts = { organizationId, invitationId, userName, accessType, publicKey, privateKey };
      return { publicKey, url: `${this.addresses.invitations()}#${new URLSearchParams(parts).toString()}` };
    } finally {
      key.fill(0);
    }
  }
}
