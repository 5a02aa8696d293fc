import type { ApiKeyStore } from './api-key-store.ts';
import type { CheckResult } from './check-result.ts';
import type { ConversationStore } from './conversation-store.ts';
import type { EventStore } from './event-store.ts';
import type { ExecutionStore } from './execution-store.ts';
import type { ListingCache } from './listing-cache.ts';
import type { SandboxStore } from './sandbox-store.ts';
import type { SpecStore } from './spec-store.ts';

/** Everything that a deployment keeps, behind one connection. */
export interface Store {
  /** The name in the configuration: `sqlite`. */
  readonly name: string;
  readonly sandboxes: SandboxStore;
  readonly conversations: ConversationStore;
  readonly executions: ExecutionStore;
  readonly events: EventStore;
  readonly apiKeys: ApiKeyStore;
  readonly specs: SpecStore;
  readonly listingCache: ListingCache;

  /** Checks whether it can be read and written. Never fails. */
  check(): Promise<CheckResult>;

  /** Idempotent. Later calls fail with `store_unavailable`. */
  close(): Promise<void>;
}
