/**
 * Names the organization of a request's body, for load balancers: they send all requests of one organization to one
 * coordinator, which then holds its state. A hint only: coordinators read the body, and any of them answers.
 */
const organizationHeader = 'x-organization-id';

/** The header for load balancers; none for what cannot be an id. */
export function routingHeader(organizationId: string): Readonly<Record<string, string>> {
  return /^[\w-]{1,64}$/.test(organizationId) ? { [organizationHeader]: organizationId } : {};
}
