import { expect, test } from 'vitest';
import { sentenceOf, sentenceOfFailure } from '../../../src/adapters/shared/status-and-error-messages.ts';
import type { FailureCode, FailureContexts } from '../../../src/domain/failure.ts';
import type { ProbeMiss } from '../../../src/domain/readiness.ts';
import { explained, type Reason, type ReasonCode, type ReasonOf } from '../../../src/domain/reason.ts';

type Examples = { readonly [C in ReasonCode]: Omit<ReasonOf<C>, 'code'> };

const none = {};
const image = { image: 'acme/shop:2', registry: 'Docker Hub' };
const exit: Reason = { code: 'process_exited', exitCode: 3, signal: null, program: null };
const methods = [{ id: 'model-key', name: 'Use MODEL_KEY' }];

/** One example of every reason; the compiler says which is missing. */
const examples: Examples = {
  explained: explained('the engine has a network skep that is not of Skep; remove it'),
  noted: { text: 'paused by its owner' },
  failure: { failure: 'sandbox_busy', context: { id: 'sb-1', status: 'PAUSING' } },
  internal_error: none,
  closed: none,
  unreachable: none,
  host_unknown: none,
  connection_lost: none,
  certificate_untrusted: none,
  server_error: { status: 502 },
  unexpected_status: { status: 418 },
  malformed_answer: { about: 'a commit' },
  too_large: { limit: '100 pages' },
  disk_full: none,
  locked: none,
  damaged: none,
  unknown_sandbox_spec: { specId: 'nodes' },
  user_id: {},
  unknown_option: { options: ['allow', 'deny'] },
  repository_name: { problem: 'backslash' },
  sandbox_path: { message: 'must be absolute' },
  sandbox_directory: { message: 'must be absolute' },
  sandbox_working_dir: { message: 'must be absolute' },
  sandbox_archive: { message: '"../x" leads out of the directory' },
  not_known_to_runtime: none,
  not_in_quarantine: none,
  paused_by_owner: none,
  resumed_by_owner: none,
  deleted_by_owner: none,
  claimed_from_pool: { instanceId: 'sb-9' },
  idle: { tier: 'freeze', afterMs: 900_000 },
  quarantined: { keptForMs: 86_400_000, specId: 'node', ownerId: null },
  adopted: none,
  life_over: { afterMs: 20 * 86_400_000 },
  disk_pressure: { usedPercent: 93, limitPercent: 90 },
  made_room: { forSandbox: 'sb-2', limit: 'running_per_owner', max: 5 },
  ended_outside: { cause: { code: 'host_restarted' } },
  ended_while_frozen: { cause: null },
  frozen_outside: none,
  vanished: none,
  host_restarted: none,
  being_removed: none,
  pause_refused: none,
  freeze_refused: none,
  still_running: { cause: { code: 'unreachable' }, before: exit },
  pool_spec_changed: none,
  pool_full: none,
  pool_member_lost: { status: 'ERROR', cause: exit },
  waiting_for_start_slot: none,
  pulling_image: { image: 'node:26', layers: 5, doneLayers: 2, bytes: 96_000_000, doneBytes: 3_100_000 },
  creating_sandbox: none,
  starting_command: none,
  runtime_silent: none,
  probe_missed: { probe: 'http', port: 8000, path: '/health', miss: { kind: 'answered', status: 503 } },
  processes_continued: none,
  processes_restarted: none,
  not_ready_in_time: { withinMs: 90_000, last: { code: 'starting_command' } },
  ended_while_starting: none,
  ended_while_resuming: none,
  image_not_named: none,
  image_name_invalid: { image: 'not an image' },
  image_not_found: image,
  image_login_required: image,
  image_login_refused: image,
  image_pull_timeout: { ...image, limitMs: 600_000 },
  image_pull_failed: { ...image, message: 'no space left on device' },
  disk_limit_unavailable: none,
  isolation_unavailable: { name: 'kata', available: ['runc', 'runsc'] },
  command_not_named: none,
  command_not_found: { command: 'agnet' },
  command_not_executable: { command: '/etc/passwd' },
  user_not_found: { kind: 'group', name: 'staff' },
  launch_refused: { message: 'no space left on device' },
  invalid_id: none,
  processes_ended: none,
  processes_killed: none,
  process_exited: { exitCode: 127, signal: null, program: 'agnet' },
  out_of_memory: { exitCode: 137, signal: 'SIGKILL' },
  main_process_ended: { cause: { code: 'process_exited', exitCode: null, signal: 'SIGSEGV', program: null } },
  sandbox_deleted: none,
  sandbox_lost: { status: 'MISSING', cause: { code: 'vanished' } },
  step_failed: { step: 'PREPARING_REPOSITORY', cause: { code: 'not_done_in_time', withinMs: 1_800_000 } },
  not_done_in_time: { withinMs: 1_800_000 },
  fetching_repository: { phase: 'receiving', percent: 40 },
  fetching_repository_again: none,
  copying_files: none,
  message_waiting: { cause: { code: 'failure', failure: 'runtime_timeout', context: { runtime: 'docker', limitMs: 30_000 } } },
  messages_dropped: { count: 2, cause: { code: 'sandbox_deleted' } },
  start_failed: { cause: null },
  queue_full: { limit: 'messages', max: 100 },
  turn_failed: { stopReason: 'failed' },
  interrupted_by_shutdown: none,
  message_requeued: none,
  interrupted_by_restart: none,
  sandbox_stopped: { cause: { code: 'paused_by_owner' } },
  turn_silent: { withinMs: 3_600_000 },
  permission_unanswered: { withinMs: 86_400_000 },
  permission_by_policy: { policy: 'allow' },
  permission_not_offered: { policy: 'deny' },
  permission_withdrawn: none,
  agent_not_named: none,
  agent_protocol_unknown: { protocol: 'acp' },
  sandbox_secrets_missing: { names: ['DATABASE_URL'] },
  agent_secrets_missing: { names: ['MODEL_KEY', 'PROXY'] },
  agent_start_failed: { cause: { code: 'agent_exited' } },
  agent_not_ready_in_time: { withinMs: 20_000, last: null },
  agent_ended: { cause: { code: 'agent_exited' }, exitCode: 139, output: 'Segmentation fault' },
  agent_exited: none,
  agent_error: { message: 'the model is overloaded' },
  agent_session_refused: { message: 'no room' },
  agent_session_not_found: none,
  agent_session_closed: none,
  agent_connection_lost: none,
  agent_version_unsupported: { offered: 2, supported: 1 },
  agent_authentication_required: { message: 'Authentication required', variables: ['MODEL_KEY'], methods },
  agent_authentication_refused: { methodId: 'model-key', message: 'MODEL_KEY is not set', variables: [], methods: [] },
  agent_output_invalid: { maxLines: 1000, firstLine: 'starting up, please wait' },
  agent_line_too_long: { maxBytes: 16_777_216 },
  agent_output_not_stored: none,
  agent_stop_reason_unknown: { stopReason: 'of_the_future' },
  agent_busy: none,
};

const failures: FailureContexts = {
  unauthorized: {},
  forbidden: { action: 'start sandboxes' },
  repository_not_found: { repository: 'acme/shop' },
  repository_forbidden: { provider: 'github', repository: 'acme/shop' },
  repository_empty: { repository: 'acme/shop', branch: 'main' },
  branch_not_found: { repository: 'acme/shop', branch: 'next' },
  sandbox_not_found: { id: 'sb-1' },
  conversation_not_found: { id: 'conv-1' },
  permission_not_found: { id: 'perm-1' },
  port_not_exposed: { id: 'sb-1', port: 5173, exposed: [8000] },
  proxy_off: {},
  port_closed: { id: 'sb-1', port: 8000 },
  file_not_found: { path: '/workspace/notes.md' },
  sandbox_not_running: { id: 'sb-1', status: 'ERROR' },
  sandbox_not_paused: { id: 'sb-1', status: 'ERROR' },
  sandbox_busy: { id: 'sb-1', status: 'STARTING' },
  sandbox_in_quarantine: { id: 'sb-1' },
  freeze_unsupported: { runtime: 'docker' },
  conversation_not_ready: { id: 'conv-1', reason: { code: 'agent_not_named' } },
  idempotency_conflict: { key: 'order-4711' },
  invalid_request: { problems: [{ argument: 'sandboxSpecId', reason: { code: 'unknown_sandbox_spec', specId: 'x' } }] },
  sandbox_limit_reached: { limit: 'running_per_owner', max: 5, retryAfterSeconds: 10 },
  conversation_limit_reached: { limit: 'conversations_per_owner', max: 100, retryAfterSeconds: 60 },
  rate_limited: { limit: 'requests_per_minute', retryAfterSeconds: 12 },
  internal: { incident: 'inc-1' },
  provider_unauthorized: { provider: 'github' },
  provider_failed: { provider: 'github', reason: { code: 'server_error', status: 500 } },
  provider_rate_limited: { provider: 'github', retryAfterSeconds: 1800 },
  provider_timeout: { provider: 'github', limitMs: 10_000 },
  runtime_unavailable: { runtime: 'docker', reason: { code: 'unreachable' }, retryAfterSeconds: 5 },
  runtime_timeout: { runtime: 'docker', limitMs: 30_000 },
  store_unavailable: { reason: { code: 'closed' }, retryAfterSeconds: 1 },
  shutting_down: { retryAfterSeconds: 5 },
};

const others: readonly Reason[] = [
  { code: 'idle', tier: 'stop', afterMs: 7_200_000 },
  { code: 'idle', tier: 'delete', afterMs: 10 * 86_400_000 },
  { code: 'pulling_image', image: 'node:26', layers: 0, doneLayers: 0, bytes: null, doneBytes: null },
  { code: 'process_exited', exitCode: 3, signal: null, program: '/bin/x' },
  { code: 'process_exited', exitCode: 126, signal: null, program: '/etc/passwd' },
  { code: 'process_exited', exitCode: 137, signal: 'SIGKILL', program: null },
  { code: 'process_exited', exitCode: 0, signal: null, program: null, phase: 'starting', output: 'ready' },
  { code: 'process_exited', exitCode: 2, signal: null, program: null, phase: 'resuming', output: 'no such table' },
  { code: 'not_ready_in_time', withinMs: 60_000, last: { code: 'probe_missed', probe: 'tcp', port: 80, path: null, miss: { kind: 'refused' } }, output: 'listening on 127.0.0.1:80' },
  { code: 'fetching_repository', phase: 'unpacking', percent: 90 },
  { code: 'fetching_repository', phase: null, percent: null },
  { code: 'messages_dropped', count: 1, cause: null },
  { code: 'agent_ended', cause: null, exitCode: null, output: 'no licence' },
  { code: 'agent_error', message: '' },
];

const misses: { readonly [K in ProbeMiss['kind']]: Extract<ProbeMiss, { kind: K }> } = {
  answered: { kind: 'answered', status: 404 },
  refused: { kind: 'refused' },
  silent: { kind: 'silent', withinMs: 2000 },
  closed: { kind: 'closed' },
  host_unknown: { kind: 'host_unknown' },
  host_unreachable: { kind: 'host_unreachable' },
  malformed: { kind: 'malformed' },
  certificate_refused: { kind: 'certificate_refused' },
  invalid_path: { kind: 'invalid_path' },
  failed: { kind: 'failed', errorCode: 'EPROTONOSUPPORT' },
  unexposed: { kind: 'unexposed' },
};

test('every reason has a sentence', () => {
  const sentences = Object.entries(examples).map(([code, data]) => `${code}: ${sentenceOf({ code, ...data } as Reason)}`);
  expect([...sentences, ...others.map((reason) => `${reason.code}: ${sentenceOf(reason)}`)]).toMatchSnapshot();
});

test('every missed probe has a sentence', () => {
  const reasons = Object.values(misses).map((miss): Reason => ({ code: 'probe_missed', probe: 'tcp', port: 22, path: null, miss }));
  expect(reasons.map((reason) => sentenceOf(reason))).toMatchSnapshot();
});

test('every failure has a sentence', () => {
  const codes = Object.keys(failures) as FailureCode[];
  expect(codes.map((code) => `${code}: ${sentenceOfFailure({ code, context: failures[code] })}`)).toMatchSnapshot();
});

test('a code of a later version is shown as it is', () => {
  expect(sentenceOf({ code: 'moved_to_the_moon' } as never)).toBe('Moved to the moon.');
});
