import type { Generated, Kysely } from 'kysely';

/** The tables of a store. Times are in milliseconds since the epoch, flags are 0 or 1, and what is structured is JSON text. */
export interface Database {
  readonly sandboxes: SandboxRow & { seq: Generated<number>; pool_fingerprint: Generated<string> };
  readonly conversations: ConversationRow;
  readonly events: EventRow & { sequence: Generated<number> };
  readonly claims: ClaimRow;
  readonly api_keys: ApiKeyRow;
  readonly specs: SpecRow;
  readonly listing_cache: ListingCacheRow & { id: Generated<number> };
  readonly listing_cache_size: { bytes: number };
}

/** The database, or a transaction on it. */
export type Db = Kysely<Database>;

export interface SandboxRow {
  id: string;
  instance_id: string;
  owner_id: string;
  spec_id: string;
  status: string;
  status_detail: string | null;
  status_since: number;
  starting_since: number | null;
  pause_kind: string | null;
  session_api_key: string;
  version: number;
  created_at: number;
  updated_at: number;
  last_active_at: number;
  deleted_at: number | null;
  removed_at: number | null;
  /** Whether it counts as running. The store computes it from the domain's rule, since a partial index needs a column. */
  running: number;
  exposed_urls: string;
  spec: string;
}

export interface ConversationRow {
  id: string;
  owner_id: string;
  title: string | null;
  /** What is searched. A change of the rule in `foldTitle` needs a migration. */
  title_folded: string;
  sandbox_id: string;
  sandbox_spec_id: string;
  starts_sandbox: number;
  selected_repository: string | null;
  selected_branch: string | null;
  git_provider: string | null;
  start_status: string;
  execution_status: string | null;
  status_detail: string | null;
  version: number;
  created_at: number;
  updated_at: number;
  deleted_at: number | null;
  removed_at: number | null;
  /** Whether a sweep must look at it, computed from the domain's rule. */
  unsettled: number;
  queue: string;
  turn: string | null;
  permission: string | null;
  permission_policy: string;
  agent_session_id: string | null;
  microagents: string | null;
}

export interface EventRow {
  kind: string;
  at: number;
  owner_id: string;
  conversation_id: string | null;
  sandbox_id: string | null;
  actor: string;
  reason: string | null;
  data: string;
}

/** A claim belongs to a record; the same key for two kinds of record is two claims. */
export interface ClaimRow {
  owner_id: string;
  kind: 'sandbox' | 'conversation';
  key: string;
  fingerprint: string;
  record_id: string;
}

export interface ApiKeyRow {
  id: string;
  name: string;
  user_id: string;
  access: string;
  hash: string;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
}

export interface SpecRow {
  id: string;
  fingerprint: string;
  first_seen: number;
}

export interface ListingCacheRow {
  scope: string;
  key: string;
  value: string;
  bytes: number;
  used_at: number;
}
