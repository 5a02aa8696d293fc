import type { Generated, Kysely } from 'kysely';
import type { KeptChanges } from '../../domain/change.ts';
import type { Conversation } from '../../domain/conversation.ts';
import type { EventDraft } from '../../domain/event.ts';
import type { ExecutionRecord } from '../../domain/execution.ts';
import { Failure } from '../../domain/failure.ts';
import type { ApiKeyRecord, LoginCode } from '../../domain/api-key.ts';
import type { Reason } from '../../domain/reason.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { RowOf } from './record-rows.ts';

/** The tables of a store. Times are in milliseconds since the epoch, booleans are 0 or 1, arrays and objects are JSON text. */
export interface Database {
  readonly sandboxes: SandboxRow & { seq: Generated<number>; pool_fingerprint: Generated<string> };
  readonly conversations: ConversationRow;
  readonly executions: ExecutionRow;
  readonly events: RowOf<EventDraft> & { sequence: Generated<number> };
  readonly kept_changes: RowOf<KeptChanges> & { conversation_id: string };
  readonly claims: ClaimRow;
  readonly api_keys: RowOf<ApiKeyRecord>;
  readonly login_codes: RowOf<LoginCode>;
  readonly specs: { id: string; fingerprint: string; first_seen: number };
  readonly listing_cache: { id: Generated<number>; scope: string; key: string; value: string; bytes: number; used_at: number };
  readonly listing_cache_size: { bytes: number };
}

export type Db = Kysely<Database>;

export type SandboxRow = RowOf<Sandbox> & {
  spec_id: string;
  /** 1 if it counts as running. The store computes it from the domain's rule, since a partial index needs a column. */
  running: number;
};

export type ConversationRow = RowOf<Conversation> & {
  /** The title in the form for searches. A change of `foldTitle` needs a migration. */
  title_folded: string;
  /** 1 if a sweep must handle it. Computed from the domain's rule. */
  unsettled: number;
};

export type ExecutionRow = RowOf<ExecutionRecord> & {
  unsettled: number;
};

/** The idempotency claim of a record. The same key for two kinds of records makes two claims. */
export interface ClaimRow {
  owner_id: string;
  kind: 'sandbox' | 'conversation' | 'execution';
  key: string;
  fingerprint: string;
  record_id: string;
}

const retryAfterSeconds = 5;

export function storeUnavailable(reason: Reason, cause?: unknown): Failure<'store_unavailable'> {
  return new Failure('store_unavailable', { reason, retryAfterSeconds }, { cause });
}
