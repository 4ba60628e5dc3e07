/** The port for invitation links (see `keyring/invitation-links.ts`). */
export interface InvitationPort {
  /**
   * A link with a fresh key in it; the public part is a compressed P-256 point, hex. The link may only appear in its
   * mail.
   */
  newLink(invited: {
    readonly organizationId: string;
    readonly invitationId: string;
    readonly receiverUserName: string;
    readonly accessType: string;
  }): { readonly publicKey: string; readonly url: string };
}
