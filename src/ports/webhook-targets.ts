/** The port for destinations of webhook deliveries (see `http-client/webhook-targets.ts`). */
export interface WebhookTargetPort {
  /**
   * Refuses a URL that nothing would be delivered to: its scheme, or an address that its host leads to.
   * @throws {CoordinatorError} INVALID_ARGUMENT; FAILED_PRECONDITION when the host cannot be resolved now
   */
  check(url: string): Promise<void>;
}
