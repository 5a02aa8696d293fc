import type { Principal } from '../domain/principal.ts';

/** Finds out who makes a request. */
export interface Auth {
  /** One line for a person: what it accepts. */
  readonly description: string;

  /**
   * Returns the principal of the credential (the value of the header, null if it is absent). Failures: `unauthorized` (none,
   * unknown, expired, revoked), `store_unavailable`.
   */
  authenticate(credential: string | null): Promise<Principal>;
}
