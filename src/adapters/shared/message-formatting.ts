import type { FailureContexts } from '../../domain/failure.ts';
import type { FrontMatterProblem } from '../../domain/microagent.ts';
import type { ProbeMiss } from '../../domain/readiness.ts';
import type { ReasonCode, ReasonOf } from '../../domain/reason.ts';
import { maxRepositoryNameLength, type RepositoryNameProblem } from '../../domain/repository-name.ts';

/** What a repository name must not be or contain. */
export const nameProblems: Readonly<Record<RepositoryNameProblem, string>> = {
  empty: 'be empty',
  too_long: `be longer than ${maxRepositoryNameLength} characters`,
  malformed_unicode: 'contain malformed Unicode',
  control_character: 'contain a control character',
  backslash: 'contain a backslash',
  leading_slash: 'begin with a slash',
  empty_segment: 'contain an empty segment',
  dot_segment: 'contain the segment "." or ".."',
};

/** The problem of the front matter, and what to do. */
export const frontMatterProblems: Readonly<Record<FrontMatterProblem, string>> = {
  not_closed: 'has no end: close it with a line of three hyphens.',
  too_long: 'is too long to be read: keep it below 16,384 characters.',
  not_yaml: 'is not valid YAML.',
  alias: 'has an alias, which is not read: write the value out.',
  not_a_mapping: 'has no mapping at its top: write "key: value".',
  triggers: 'has triggers that are not a list of texts.',
};

export function asSentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/u.test(begun) ? begun : `${begun}.`;
}

/** Returns a text for a code that this version does not know. */
export function textOfCode(code: string): string {
  return asSentence(code.replaceAll('_', ' '));
}

export function quoted(text: string): string {
  return JSON.stringify(text);
}

/** Some of the sentences of reasons. The type of the whole table requires all of them. */
type ReasonSentences = { readonly [C in ReasonCode]?: (reason: ReasonOf<C>) => string };

/** The sentences about an invalid argument. */
export const argumentReasons = {
  env_reserved: ({ names }) => `must not set ${names.join(', ')}: Skep sets it itself, or it is one of the secrets`,
  env_credential: ({ names }) =>
    `must not hold what looks like a credential: ${names.join(', ')}; put the value into a variable of the server's environment, list that `
    + 'one in the spec under allowed_secrets, and ask for it in secrets; if it is not a secret, the spec needs allow_plain_secrets: true',
  secrets_not_allowed: ({ names, allowed }) =>
    `must be names that the spec allows${allowed.length === 0 ? ', which are none' : `: ${allowed.join(', ')}`}; not allowed: `
    + `${names.join(', ')}; allowed_secrets of the spec can add them`,
  timeout_above_spec: ({ maxMs }) => `must be at most ${maxMs / 1000} seconds, the max_life of the spec`,
  resource_above_spec: ({ resource, max }) => aboveSpec(resource, max),
  memory_below_minimum: ({ min }) => `must have at least ${min} memory_bytes, the least that a sandbox can have on this server`,
  resources_not_limited: () => 'must be left out, since the runtime of the server limits no resources',
  sandbox_path: ({ message }) => message,
  sandbox_directory: ({ message }) => message,
  sandbox_working_dir: ({ message }) => message,
  sandbox_archive: ({ message }) => message,
  not_known_to_runtime: () => 'must be given, since the runtime does not know it',
  not_in_quarantine: () => 'must name a sandbox in quarantine; this one is not',
} satisfies ReasonSentences;

/** Returns the problem of a requested resource. If the spec has no bound for it, no value is allowed. */
function aboveSpec(resource: string, max: number | null): string {
  const field = `resources.${resource.replace('_bytes', '')}`;
  if (max === null) return `must not have ${resource}: the spec has no bound for it; give it ${field}`;
  return `must have at most ${max} ${resource}, the ${field} of the spec`;
}

const units = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000]] as const;

/** Returns the duration in the largest unit that divides it: `15 min`. */
export function duration(ms: number): string {
  const [name, size] = units.find(([, size]) => ms >= size && ms % size === 0) ?? ['s', 1000];
  return `${ms / size} ${name}`;
}

export function bytesProgress(done: number | null, all: number | null): string {
  return all === null ? '' : `, ${megabytes(done ?? 0)} of ${megabytes(all)} MB`;
}

function megabytes(bytes: number): string {
  const value = bytes / 1e6;
  return value < 10 ? value.toFixed(1) : String(Math.round(value));
}

export function exitText(subject: string, exitCode: number | null, signal: string | null, program: string | null): string {
  if (exitCode === null) return signal === null ? `${subject} ended.` : `${subject} was killed by ${signal}.`;
  const code = `${subject} exited with code ${exitCode}${signal === null ? '' : ` (${signal})`}`;
  if (program !== null && exitCode === 127) return `${code}: the command, or one that it runs, was not found: ${program}`;
  if (program !== null && exitCode === 126) return `${code}: the command, or one that it runs, is not executable: ${program}`;
  return `${code}.`;
}

/** The subject of a sentence about ended processes, by the phase of their sandbox. */
export const subjects = { starting: 'While it started, it', running: 'It', resuming: 'While it was resumed, it' } as const;

export const hints = {
  lasting: 'A sandbox lives as long as its command: give its spec one that goes on, for example sleep infinity.',
  memory: 'Give its spec more resources.memory.',
  probe: 'Its program must listen on all addresses (0.0.0.0) at the port of the spec; a slow one needs a longer ready.within.',
} as const;

/** Joins the sentences, and the last output if it is known. */
export function endText(sentences: readonly (string | null)[], output: string | undefined): string {
  return [...sentences, output === undefined ? null : `Its last output: ${output}`].filter((text) => text !== null).join(' ');
}

export function probeMissText(miss: ProbeMiss): string {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the table is typed by the kinds
  return (misses[miss.kind] as (miss: ProbeMiss) => string)(miss);
}

const misses: { readonly [K in ProbeMiss['kind']]: (miss: Extract<ProbeMiss, { readonly kind: K }>) => string } = {
  answered: ({ status }) => `it answered ${status}`,
  refused: () => 'the connection was refused',
  silent: ({ withinMs }) => `no answer within ${duration(withinMs)}`,
  closed: () => 'the connection was closed without an answer',
  host_unknown: () => "the name of its host can't be resolved",
  host_unreachable: () => "its host can't be reached",
  malformed: () => 'its answer is not HTTP',
  certificate_refused: () => 'its certificate or its TLS is not accepted',
  invalid_path: () => "the path can't be requested",
  failed: ({ errorCode }) => `the connection failed${errorCode === null ? '' : ` (${errorCode})`}`,
  unexposed: () => 'the port is not exposed',
};

type Authentication = Pick<ReasonOf<'agent_authentication_required'>, 'variables' | 'methods'>;

export function authenticationAdvice({ variables, methods }: Authentication): string {
  const secret = variables.length === 0 ? "the variable with its model's key" : variables.join(' or ');
  const advice = `Name ${secret} in the agent's secrets in the sandbox spec, and set it in the environment of the deployment.`;
  if (methods.length === 0) return advice;
  return `${advice} Some agents also need an auth_method; this one offers ${methods.map(({ id, name }) => `${id} (${name})`).join(', ')}.`;
}

export const idleActions = {
  freeze: (span: string) => `Frozen because it was idle for ${span}, as its spec says.`,
  stop: (span: string) => `Stopped because it was frozen for ${span}, as its spec says. Its files are kept.`,
  delete: (span: string) => `Deleted because it was stopped for ${span}, as its spec says.`,
};

export const executionReasons = {
  execution_timed_out: ({ afterMs }) => `Ended with SIGKILL because it ran for ${duration(afterMs)}, as long as was asked for.`,
  execution_not_started: () => 'It was never started: Skep ended before, or the start failed.',
  execution_vanished: () => 'The sandbox does not have it any more, so nobody knows how it ended.',
  execution_sandbox_ended: () => 'Its sandbox was stopped or went away before it ended.',
  execution_end_unknown: () => 'What watched over it in the sandbox was ended, so nobody knows how it ended.',
  execution_attached: () => 'It ends with the server that started it: it could not be run apart from the server.',
  execution_tools_missing: ({ tools }) => `It ends with the server that started it: its sandbox lacks ${tools.join(', ')}.`,
  terminal_unsupported: () => 'must be left out: the runtime of this deployment has no terminals',
} satisfies ReasonSentences;

/** The sentences of the reasons of changes and publications. */
export const changeReasons = {
  no_repository: () => 'It has no repository, its start has not brought it yet, or an earlier version began it.',
  git_missing: () => 'Its sandbox lacks git or a standard tool. Use an image that has git.',
  history_rewritten: () => 'The commits in its sandbox do not descend from where it began, or the repository there is gone.',
  nothing_to_publish: () => 'Nothing differs from where the conversation began.',
  default_branch: () => 'It is the default branch. Choose another one.',
  branch_protected: () => 'The git host refused it by a rule of its own, such as a protected branch. Choose another one.',
  branch_checked_out: () => 'It is checked out in a work tree of the repository. Check out another one there, or choose another one.',
  branch_moved: () => 'It has commits that this conversation did not push. Choose another one.',
  push_forbidden: () => "The deployment's credential may read the repository, but not push to it.",
  pull_request_forbidden: () => "The deployment's credential may push, but not open pull requests. Allow it there, and publish again.",
  drafts_unsupported: () => 'Its host has no drafts for this repository. Publish again without draft.',
  nothing_to_merge: () => 'There is nothing to merge: the base has all of it, or the repository has no other branch.',
  snapshot_failed: ({ exitCode }) =>
    `Git could not read the work tree${exitCode === null ? '' : `: its exit code was ${exitCode}`}. The log of the server says more.`,
} satisfies ReasonSentences;

/** Why a sandbox was moved, for reasons without data. */
export const movedBecause = {
  paused_by_owner: () => 'Paused on request.',
  resumed_by_owner: () => 'Resumed on request.',
  deleted_by_owner: () => 'Deleted on request.',
  frozen_outside: () => 'Something outside of Skep froze it.',
  vanished: () => 'The runtime does not have it any more.',
  host_restarted: () => 'Its host was restarted while it ran.',
  being_removed: () => 'The runtime is removing it, or failed to remove it.',
  pause_refused: () => 'The runtime left the sandbox running.',
  freeze_refused: () => 'It could not hold all processes of the sandbox at that moment; they go on.',
  pool_spec_changed: () => 'Its spec has changed, or has no pool any more.',
  pool_full: () => 'The pool has enough members without it.',
} satisfies ReasonSentences;

export const keyFailures = {
  key_name_taken: ({ name }) => `There is a key with the name ${quoted(name)} already. Revoke it first, or choose another name.`,
  key_not_found: ({ id }) => `There is no key ${quoted(id)} that this key may revoke.`,
  keys_unsupported: () => 'This deployment does not keep the keys of its callers. Whoever runs it gives them out.',
  login_code_invalid: () =>
    'This link to log in was used before, or it is older than ten minutes. Make another on the server: skep dashboard',
} satisfies { readonly [C in keyof FailureContexts]?: (context: FailureContexts[C]) => string };
