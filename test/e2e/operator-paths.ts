/** What is for operators: no page of another origin reads it. */
export const operatorPaths: readonly string[] = [
  '/metrics',
  '/docs',
  '/openapi.json',
  '/health/live',
  '/health/ready',
  '/internal/v1/auth-proxy/stamp',
];

/** The same path with its first letter percent-encoded (RFC 3986, section 2.1). */
export function encoded(path: string): string {
  return path.replace(/\w/, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
}
