/**
 * The steps from one version of the schema to the next. The version is the number of applied steps, in SQLite's `user_version`. A
 * released step is never edited: a change is a new step at the end. STRICT tables check each value against its column's type.
 * AUTOINCREMENT never gives a number twice, even after a purge.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE sandboxes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner_id TEXT NOT NULL,
    spec_id TEXT NOT NULL,
    status TEXT NOT NULL,
    status_detail TEXT,
    status_since INTEGER NOT NULL,
    pause_kind TEXT,
    session_api_key TEXT NOT NULL,
    generation INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_active_at INTEGER NOT NULL,
    deleted_at INTEGER,
    removed_at INTEGER,
    running INTEGER NOT NULL,
    exposed_urls TEXT NOT NULL,
    spec TEXT NOT NULL
  ) STRICT;
  CREATE INDEX sandboxes_by_owner ON sandboxes (owner_id, created_at, id) WHERE deleted_at IS NULL;
  CREATE INDEX sandboxes_by_status ON sandboxes (owner_id, status, created_at, id) WHERE deleted_at IS NULL;
  CREATE INDEX sandboxes_by_spec ON sandboxes (owner_id, spec_id, created_at, id) WHERE deleted_at IS NULL;
  CREATE INDEX sandboxes_by_spec_and_status ON sandboxes (owner_id, spec_id, status, created_at, id) WHERE deleted_at IS NULL;
  CREATE INDEX sandboxes_running ON sandboxes (owner_id, id) WHERE running = 1;
  CREATE INDEX sandboxes_present ON sandboxes (id) WHERE removed_at IS NULL;
  CREATE INDEX sandboxes_removed ON sandboxes (removed_at) WHERE removed_at IS NOT NULL;

  CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL,
    title TEXT,
    title_folded TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    sandbox_spec_id TEXT NOT NULL,
    starts_sandbox INTEGER NOT NULL,
    selected_repository TEXT,
    selected_branch TEXT,
    git_provider TEXT,
    start_status TEXT NOT NULL,
    execution_status TEXT,
    status_detail TEXT,
    generation INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    removed_at INTEGER,
    unsettled INTEGER NOT NULL,
    initial_message TEXT
  ) STRICT;
  CREATE INDEX conversations_by_creation ON conversations (owner_id, created_at, id, updated_at, title_folded)
    WHERE deleted_at IS NULL;
  CREATE INDEX conversations_by_update ON conversations (owner_id, updated_at, id, created_at, title_folded)
    WHERE deleted_at IS NULL;
  CREATE INDEX conversations_by_sandbox ON conversations (sandbox_id) WHERE deleted_at IS NULL;
  CREATE INDEX conversations_unsettled ON conversations (id) WHERE unsettled = 1;
  CREATE INDEX conversations_removed ON conversations (removed_at) WHERE removed_at IS NOT NULL;

  CREATE TABLE claims (
    owner_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    record_id TEXT NOT NULL,
    PRIMARY KEY (owner_id, kind, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX claims_by_record ON claims (kind, record_id);

  CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    access TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX api_keys_by_name ON api_keys (name) WHERE revoked_at IS NULL;

  CREATE TABLE specs (
    id TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    first_seen INTEGER NOT NULL
  ) STRICT;
  `,
  // The size has its own table, since a sum for each write would read the whole table.
  `
  CREATE TABLE knowledge (
    id INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (scope, key)
  ) STRICT;
  CREATE INDEX knowledge_by_use ON knowledge (used_at, id, bytes);

  CREATE TABLE knowledge_size (bytes INTEGER NOT NULL) STRICT;
  INSERT INTO knowledge_size VALUES (0);
  `,
  // Pool members have no owner: `owner_id` is ''. A start in progress requests its start slot again, which costs nothing. No earlier
  // version had an agent, so each first message is still unsent and goes into the queue. If it can't be parsed, it stays unchanged. No user
  // chose a permission policy yet, so it is `ask`.
  `
  ALTER TABLE sandboxes ADD COLUMN instance_id TEXT NOT NULL DEFAULT '';
  ALTER TABLE sandboxes ADD COLUMN turn_at INTEGER;
  ALTER TABLE sandboxes ADD COLUMN pool_fingerprint TEXT NOT NULL DEFAULT '';
  UPDATE sandboxes SET instance_id = id;
  CREATE INDEX sandboxes_by_instance ON sandboxes (instance_id);
  CREATE INDEX sandboxes_existing ON sandboxes (owner_id, deleted_at) WHERE deleted_at IS NULL;
  CREATE INDEX sandboxes_idle ON sandboxes (last_active_at, id) WHERE status = 'RUNNING' AND deleted_at IS NULL AND owner_id <> '';
  CREATE INDEX sandboxes_idle_by_owner ON sandboxes (owner_id, last_active_at, id) WHERE status = 'RUNNING' AND deleted_at IS NULL;

  ALTER TABLE conversations ADD COLUMN queue TEXT NOT NULL DEFAULT '[]';
  ALTER TABLE conversations ADD COLUMN turn TEXT;
  ALTER TABLE conversations ADD COLUMN permission TEXT;
  ALTER TABLE conversations ADD COLUMN permission_policy TEXT NOT NULL DEFAULT 'ask';
  ALTER TABLE conversations ADD COLUMN agent_session_id TEXT;
  ALTER TABLE conversations ADD COLUMN microagents TEXT;
  UPDATE conversations SET queue = CASE
    WHEN json_valid(initial_message)
    THEN json_array(json_object('messageId', 'message-of-' || id, 'message', json(initial_message)))
    ELSE initial_message
  END WHERE initial_message IS NOT NULL;
  ALTER TABLE conversations DROP COLUMN initial_message;

  CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    owner_id TEXT NOT NULL,
    conversation_id TEXT,
    sandbox_id TEXT,
    actor TEXT NOT NULL,
    reason TEXT,
    data TEXT NOT NULL
  ) STRICT;
  CREATE INDEX events_by_owner ON events (owner_id);
  CREATE INDEX events_by_owner_and_kind ON events (owner_id, kind);
  CREATE INDEX events_by_conversation ON events (conversation_id, owner_id) WHERE conversation_id IS NOT NULL;
  CREATE INDEX events_by_conversation_and_kind ON events (conversation_id, owner_id, kind) WHERE conversation_id IS NOT NULL;
  CREATE INDEX events_by_sandbox ON events (sandbox_id, owner_id) WHERE conversation_id IS NULL AND sandbox_id IS NOT NULL;
  CREATE INDEX events_by_sandbox_and_kind ON events (sandbox_id, owner_id, kind) WHERE conversation_id IS NULL AND sandbox_id IS NOT NULL;
  CREATE INDEX events_by_time ON events (at);
  `,
  // Renames to the names in the code.
  `
  ALTER TABLE sandboxes RENAME COLUMN generation TO version;
  ALTER TABLE sandboxes RENAME COLUMN turn_at TO starting_since;
  ALTER TABLE conversations RENAME COLUMN generation TO version;
  ALTER TABLE knowledge RENAME TO listing_cache;
  ALTER TABLE knowledge_size RENAME TO listing_cache_size;
  DROP INDEX knowledge_by_use;
  CREATE INDEX listing_cache_by_use ON listing_cache (used_at, id, bytes);
  `,
  // A reason is JSON: a code with its data. Texts of earlier versions stay readable with the code `noted`.
  `
  ALTER TABLE sandboxes RENAME COLUMN status_detail TO status_reason;
  ALTER TABLE conversations RENAME COLUMN status_detail TO status_reason;
  UPDATE sandboxes SET status_reason = json_object('code', 'noted', 'text', status_reason) WHERE status_reason IS NOT NULL;
  UPDATE conversations SET status_reason = json_object('code', 'noted', 'text', status_reason) WHERE status_reason IS NOT NULL;
  UPDATE events SET reason = json_object('code', 'noted', 'text', reason) WHERE reason IS NOT NULL;
  `,
  // Fills `paused_by` from the events, which alone had it.
  `
  ALTER TABLE sandboxes ADD COLUMN paused_by TEXT;
  ALTER TABLE sandboxes ADD COLUMN refused TEXT;
  UPDATE sandboxes SET paused_by = (
    SELECT json_object('actor', actor, 'reason', json(reason), 'version', sandboxes.version) FROM events
    WHERE owner_id = sandboxes.owner_id AND sandbox_id = sandboxes.id AND conversation_id IS NULL AND kind = 'sandbox_moved'
      AND json_extract(data, '$.to') = 'PAUSING'
    ORDER BY sequence DESC LIMIT 1
  ) WHERE status IN ('PAUSING', 'PAUSED', 'RESUMING');
  `,
  // The repositories that a key may list and clone, as JSON. Null means all.
  'ALTER TABLE api_keys ADD COLUMN repositories TEXT',
  // The marker of an open store (see `shutdown-marker.ts`), the deployment of the records, and, in a backup, the runtime of the sandboxes.
  `
  CREATE TABLE deployment (opening TEXT NOT NULL, id TEXT, runtime TEXT) STRICT;
  INSERT INTO deployment VALUES ('------------------------------------', NULL, NULL);
  `,
  // The provider's path of the repository. A start in progress looks it up by the selected name.
  `ALTER TABLE conversations ADD COLUMN repository_path TEXT;
  UPDATE conversations SET repository_path = selected_repository`,
  // The executions in sandboxes.
  `
  CREATE TABLE executions (
    id TEXT PRIMARY KEY,
    sandbox_id TEXT NOT NULL,
    command TEXT NOT NULL,
    stdin INTEGER NOT NULL, tty INTEGER NOT NULL,
    status TEXT NOT NULL, status_reason TEXT, exit_code INTEGER,
    begun INTEGER NOT NULL, durable INTEGER NOT NULL,
    stdout_bytes INTEGER NOT NULL, stderr_bytes INTEGER NOT NULL,
    started_at INTEGER NOT NULL, deadline INTEGER, ended_at INTEGER, version INTEGER NOT NULL,
    deleted_at INTEGER, removed_at INTEGER,
    unsettled INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX executions_by_sandbox ON executions (sandbox_id, started_at, id) WHERE deleted_at IS NULL;
  CREATE INDEX executions_in_sandbox ON executions (sandbox_id);
  CREATE INDEX executions_running ON executions (sandbox_id) WHERE status = 'running' AND deleted_at IS NULL;
  CREATE INDEX executions_unsettled ON executions (id) WHERE unsettled = 1;
  CREATE INDEX executions_removed ON executions (removed_at) WHERE removed_at IS NOT NULL;
  `,
  // The parameters of a start besides its spec.
  `ALTER TABLE sandboxes ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
  ALTER TABLE conversations ADD COLUMN sandbox_parameters TEXT NOT NULL DEFAULT '{}'`,
  // Archived conversations, whose events are kept.
  'ALTER TABLE conversations ADD COLUMN archived_at INTEGER; ALTER TABLE conversations ADD COLUMN released_at INTEGER;',
  // The commit and the branch that a conversation started from, and where it was published, as JSON.
  `ALTER TABLE conversations ADD COLUMN start_point TEXT; ALTER TABLE conversations ADD COLUMN published TEXT NOT NULL DEFAULT '{}'`,
  // The changes of a conversation, for when its work tree can't be read, and its last pushes to each branch.
  `CREATE TABLE kept_changes (
    conversation_id TEXT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    kept_at INTEGER NOT NULL, tree TEXT NOT NULL, list TEXT, patch BLOB
  ) STRICT;
  ALTER TABLE conversations ADD COLUMN publications TEXT NOT NULL DEFAULT '{}'`,
  // Microagents now have the id of their content. The agent already has those that were listed only by path.
  'UPDATE conversations SET microagents = NULL',
  // The pull request of each branch, as JSON.
  `ALTER TABLE conversations ADD COLUMN pull_requests TEXT NOT NULL DEFAULT '{}'`,
  // The codes of login links. Indexes for the overview: sandboxes that fail or start, and the counts by status.
  `
  CREATE TABLE login_codes (hash TEXT PRIMARY KEY, user_id TEXT NOT NULL, access TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT;
  CREATE INDEX sandboxes_troubled ON sandboxes (status_since, owner_id)
    WHERE deleted_at IS NULL AND status IN ('ERROR', 'MISSING', 'STARTING', 'RESUMING');
  CREATE INDEX sandboxes_counted ON sandboxes (owner_id, status, deleted_at) WHERE deleted_at IS NULL;
  CREATE INDEX conversations_counted ON conversations (owner_id, start_status, execution_status, deleted_at, archived_at)
    WHERE deleted_at IS NULL AND archived_at IS NULL;
  CREATE INDEX conversations_troubled ON conversations (updated_at, owner_id)
    WHERE deleted_at IS NULL AND archived_at IS NULL AND (start_status <> 'READY' OR execution_status = 'error');
  `,
  // Searches of titles ignore accents. `fold_title` is the `foldTitle` of this version.
  `UPDATE conversations SET title_folded = fold_title(title) WHERE title_folded <> fold_title(title)`,
  // The commits that a branch may have after a push are not the branches that were published.
  'ALTER TABLE conversations RENAME COLUMN published TO possible_tips',
  // A sandbox that a conversation started ends with the last conversation that uses it.
  `ALTER TABLE conversations ADD COLUMN ends_sandbox INTEGER NOT NULL DEFAULT 0;
  UPDATE conversations SET ends_sandbox = 1 WHERE sandbox_id IN (SELECT sandbox_id FROM conversations WHERE starts_sandbox = 1)`,
  // Whose request an event is.
  'ALTER TABLE events ADD COLUMN user_id TEXT',
  // Indexes for administrators, who read the records of all owners.
  `
  CREATE INDEX events_by_kind ON events (kind);
  CREATE INDEX sandboxes_of_all ON sandboxes (created_at, id) WHERE deleted_at IS NULL;
  CREATE INDEX conversations_of_all_by_creation ON conversations (created_at, id, updated_at, title_folded) WHERE deleted_at IS NULL;
  CREATE INDEX conversations_of_all_by_update ON conversations (updated_at, id, created_at, title_folded) WHERE deleted_at IS NULL;
  `,
];
