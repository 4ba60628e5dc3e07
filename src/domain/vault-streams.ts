const prefix = 'vault-';

/** The vault of the installation's own keys. */
export const installationVault = 'installation';

/** The stream of a vault; deleting it shreds its secrets. */
export function vaultStream(vaultId: string): string {
  return `${prefix}${vaultId}`;
}

/** The vault of a stream; undefined for any other stream. */
export function vaultIdOf(stream: string): string | undefined {
  return stream.startsWith(prefix) ? stream.slice(prefix.length) : undefined;
}
