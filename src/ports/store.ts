import type { ApiKeyStore } from './api-key-store.ts';
import type { CheckResult } from './check-result.ts';
import type { ConversationStore } from './conversation-store.ts';
import type { EventStore } from './event-store.ts';
import type { ListingCache } from './listing-cache.ts';
import type { SandboxStore } from './sandbox-store.ts';
import type { SpecStore } from './spec-store.ts';

/** All that a deployment keeps, behind one connection. */
export interface Store {
  /** The name it is configured by: `sqlite`, `memory`. */
  readonly name: string;
  readonly sandboxes: SandboxStore;
  readonly conversations: ConversationStore;
  readonly events: EventStore;
  readonly apiKeys: ApiKeyStore;
  readonly specs: SpecStore;
  readonly listingCache: ListingCache;

  /** One line for a person: whether it answers. Never fails. */
  check(): Promise<CheckResult>;

  /** Idempotent; later calls fail with `store_unavailable`. */
  close(): Promise<void>;
}
