import type { Generated } from 'kysely';

/** The schema as the statements see it. Times are in milliseconds since the epoch; flags are 0 or 1. */
export interface Tables {
  readonly sandboxes: SandboxRow & { seq: Generated<number>; pool_fingerprint: Generated<string> };
  readonly conversations: ConversationRow;
  readonly events: EventRow;
  readonly sqlite_sequence: { name: string; seq: number };
  readonly claims: ClaimRow;
  readonly api_keys: ApiKeyRow;
  readonly specs: SpecRow;
  readonly knowledge: KnowledgeRow & { id: Generated<number> };
  readonly knowledge_size: { bytes: number };
}

export interface SandboxRow {
  id: string;
  instance_id: string;
  owner_id: string;
  spec_id: string;
  status: string;
  status_detail: string | null;
  status_since: number;
  turn_at: number | null;
  pause_kind: string | null;
  session_api_key: string;
  generation: number;
  created_at: number;
  updated_at: number;
  last_active_at: number;
  deleted_at: number | null;
  removed_at: number | null;
  running: number;
  exposed_urls: string;
  spec: string;
}

export interface ConversationRow {
  id: string;
  owner_id: string;
  title: string | null;
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
  generation: number;
  created_at: number;
  updated_at: number;
  deleted_at: number | null;
  removed_at: number | null;
  unsettled: number;
  queue: string;
  turn: string | null;
  permission: string | null;
  permission_policy: string;
  agent_session_id: string | null;
  microagents: string | null;
}

/** An event that has no sequence number yet. */
export interface EventDraftRow {
  kind: string;
  at: number;
  owner_id: string;
  conversation_id: string | null;
  sandbox_id: string | null;
  actor: string;
  reason: string | null;
  data: string;
}

export interface EventRow extends EventDraftRow {
  sequence: Generated<number>;
}

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

export interface KnowledgeRow {
  scope: string;
  key: string;
  value: string;
  bytes: number;
  used_at: number;
}
