import type { FailureContexts } from '../../domain/failure.ts';
import type { FrontMatterProblem } from '../../domain/microagent.ts';
import type { ProbeMiss } from '../../domain/readiness.ts';
import type { Authentication } from '../../domain/conversation-reason.ts';
import type { ReasonCode, ReasonOf } from '../../domain/reason.ts';
import { maxRepositoryNameLength, type RepositoryNameProblem } from '../../domain/repository-name.ts';
import { asSentence, duration, endText, quoted } from './message-formatting.ts';

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
  not_closed: 'is not closed: end it with a line of three hyphens.',
  too_long: 'is too long to be read: keep it below 16,384 characters.',
  not_yaml: 'is not valid YAML.',
  alias: 'contains an alias, which is not supported: write the value itself.',
  not_a_mapping: 'is not a mapping: write lines such as "key: value".',
  triggers: 'has triggers that are not a list of strings with words.',
};

/** Some of the sentences of reasons. The type of the whole table requires all of them. */
type ReasonSentences = { readonly [C in ReasonCode]?: (reason: ReasonOf<C>) => string };

/** The sentences about an invalid argument. */
export const argumentReasons = {
  env_reserved: ({ names }) => `must not set ${names.join(', ')}: Skep sets it, or secrets names it`,
  env_credential: ({ names }) =>
    `must not contain values that look like credentials: ${names.join(', ')}. Put such a value into a variable of the server's `
    + 'environment, add the name of that variable to allowed_secrets in the spec, and name it in secrets. If the value is not a secret, '
    + 'set allow_plain_secrets: true in the spec',
  secrets_not_allowed: ({ names, allowed }) =>
    `must not name ${names.join(', ')}: the spec allows ${allowed.length === 0 ? 'no secrets' : `only ${allowed.join(', ')}`}. `
    + 'Add the names to allowed_secrets in the spec, or leave them out',
  timeout_above_spec: ({ maxMs }) => `must be at most ${maxMs / 1000} seconds: that is max_life of the spec`,
  resource_above_spec: ({ resource, max }) => aboveSpec(resource, max),
  memory_below_minimum: ({ min }) => `must have at least ${min} memory_bytes: that is the minimum on this server`,
  resources_not_limited: () => "must be left out: the sandbox runtime of the server can't limit resources",
  sandbox_path: ({ message }) => message,
  sandbox_directory: ({ message }) => message,
  sandbox_working_dir: ({ message }) => message,
  sandbox_archive: ({ message }) => message,
  not_known_to_runtime: () => 'must be given: the runtime does not know it',
  not_in_quarantine: () => 'must name a sandbox in quarantine; this one is not',
  terminal_unsupported: () => 'must be left out: the runtime of this deployment has no terminals',
} satisfies ReasonSentences;

/** Returns the problem of a requested resource. If the spec has no bound for it, no value is allowed. */
function aboveSpec(resource: string, max: number | null): string {
  const field = `resources.${resource.replace('_bytes', '')}`;
  if (max === null) return `must not have ${resource}: the spec sets no limit for it. Add ${field} to the spec, or leave it out`;
  return `must have at most ${max} ${resource}: that is ${field} of the spec`;
}

export function probeMissText(miss: ProbeMiss): string {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the table is typed by the kinds
  return (misses[miss.kind] as (miss: ProbeMiss) => string)(miss);
}

const misses: { readonly [K in ProbeMiss['kind']]: (miss: Extract<ProbeMiss, { readonly kind: K }>) => string } = {
  answered: ({ status }) => `it returned the status ${status}`,
  refused: () => 'the connection was refused',
  silent: ({ withinMs }) => `no answer within ${duration(withinMs)}`,
  closed: () => 'the connection was closed without an answer',
  host_unknown: () => "the name of its host can't be resolved",
  host_unreachable: () => "its host can't be reached",
  malformed: () => 'its answer is not HTTP',
  certificate_refused: () => 'its TLS certificate or its TLS version is not accepted',
  invalid_path: () => "the path can't be requested",
  failed: ({ errorCode }) => `the connection failed${errorCode === null ? '' : ` (${errorCode})`}`,
  unexposed: () => 'the port is not exposed',
};

function authenticationAdvice({ methodId, variables, methods }: Authentication): string {
  const secret = variables.length === 0 ? "the variable with its model's key" : variables.join(' or ');
  const secretAdvice = `name ${secret} in the agent's secrets in the sandbox spec, and set it in the environment of the deployment`;
  const chosen = methods.find(({ id }) => id === methodId);
  if (chosen?.description !== undefined) {
    return `The agent says about ${chosen.id}: ${asSentence(chosen.description)} If that one needs a key, ${secretAdvice}.`;
  }
  if (methods.length === 0 || chosen !== undefined) return asSentence(secretAdvice);
  const offered = methods.map(({ id, name, description }) => `${id} (${[name, description].filter(Boolean).join(': ')})`).join(', ');
  return `The auth_method of the agent in the sandbox spec must be one of ${offered}. If that one needs a key, ${secretAdvice}.`;
}

const setSecrets = 'Set them in the environment of the server, and restart it.';

/** The sentences about secrets and keys that a sandbox or an agent lacks. */
export const credentialReasons = {
  sandbox_secrets_missing: ({ names }) => `The sandbox needs variables that are not set: ${names.join(', ')}. ${setSecrets}`,
  agent_secrets_missing: ({ names }) => `The agent needs variables that are not set: ${names.join(', ')}. ${setSecrets}`,
  agent_authentication_required: (reason) =>
    `The agent requires authentication: ${asSentence(reason.message)} ${authenticationAdvice(reason)}`,
  agent_authentication_refused: (reason) =>
    `The agent refused to authenticate by ${reason.methodId}: ${asSentence(reason.message)} ${authenticationAdvice(reason)}`,
} satisfies ReasonSentences;

/** The sentences of the reasons why a runtime can't start what a spec describes. */
export const launchReasons = {
  image_not_named: () => 'Its spec names no image. Add one to the spec.',
  image_name_invalid: ({ image }) => `${quoted(image)} is not the name of an image. Correct the image of the spec.`,
  image_not_found: ({ image, registry }) =>
    `${registry} has no image ${image}. Correct the image of the spec, or build or load the image where the sandboxes run.`,
  image_login_required: ({ image, registry }) => {
    // The command has no argument for Docker Hub.
    const login = registry === 'Docker Hub' ? 'docker login' : `docker login ${registry}`;
    return `The image ${image} does not exist, or ${registry} requires a login. Correct the image of the spec, or log in with ${login}.`;
  },
  image_login_refused: ({ image, registry }) =>
    `The image ${image} does not exist, or ${registry} refuses the login. Correct the image of the spec, or log in again.`,
  image_pull_timeout: ({ image, registry, limitMs }) =>
    `The image ${image} was not pulled within ${duration(limitMs)}. Pull it in advance, or check the connection to ${registry}.`,
  image_pull_failed: ({ image, registry, message }) =>
    `The image ${image} could not be pulled. Correct the image of the spec, load the image, or make ${registry} reachable. ` +
    asSentence(message),
  disk_limit_unavailable: () =>
    "The storage where the sandboxes run can't limit disk space. Remove resources.disk from the spec, or give Docker a storage that can: " +
    'overlay2 on XFS with the mount option pquota, Btrfs or ZFS.',
  isolation_unavailable: ({ name, available }) => {
    const others = available.length === 0 ? '' : `, only ${available.join(', ')}`;
    return `The isolation ${quoted(name)} is not installed where the sandboxes run${others}. Install it, or change the spec.`;
  },
  command_not_named: () => 'Its spec has no command. Add one to the spec: this runtime does not run images.',
  command_not_found: ({ command }) => `Its command was not found: ${command}`,
  command_not_executable: ({ command }) => `Its command is not executable: ${command}`,
  user_not_found: ({ kind, name }) => `Its image has no ${kind} ${name}. Correct isolation.user of the spec, or use another image.`,
  launch_refused: ({ message }) => `It could not be started. ${asSentence(message)}`,
  invalid_id: () => 'Its id is not a DNS label.',
} satisfies ReasonSentences;

export const idleActions = {
  freeze: (span: string) => `Frozen because it was idle for ${span}, as its spec says.`,
  stop: (span: string) => `Stopped because it was idle or frozen for ${span}, as its spec says. Its files are kept.`,
  delete: (span: string) => `Deleted because it was stopped for ${span}, as its spec says.`,
};

export const executionReasons = {
  execution_timed_out: ({ afterMs }) => `Killed (SIGKILL) because it reached its time limit of ${duration(afterMs)}.`,
  execution_not_started: () => 'It was never started: Skep stopped before, or the start failed.',
  execution_vanished: () => 'The sandbox does not have it any more, so its exit code is not known.',
  execution_sandbox_ended: () => 'Its sandbox was stopped or went away before it ended.',
  execution_end_unknown: () => 'Its supervisor in the sandbox was ended, so its exit code is not known.',
  execution_attached: () => 'It ends when the server ends: it could not be started independently of the server.',
  execution_tools_missing: ({ tools }) => `It ends when the server ends: its sandbox lacks ${tools.join(', ')}.`,
} satisfies ReasonSentences;

/** The sentences of the reasons of changes and publications. */
export const changeReasons = {
  no_repository: () => 'It has no repository, the repository is not there yet, or an earlier version of Skep started it.',
  git_missing: () => 'Its sandbox lacks git or a standard tool. Use an image that has git.',
  start_commit_missing: () =>
    'Its sandbox does not have the commit that it started from, or its git repository, any more. '
    + 'Fetch the commit there, or get its files as a tar (format=archive).',
  history_rewritten: () =>
    'The commit that it started from is not in the history of its branch any more. '
    + 'Restore the history in its sandbox, for example with git rebase, or get its changes as a patch (format=patch).',
  files_left_out: () =>
    'Some work is left out: files that git could not read, changes in a git repository inside the work tree, '
    + 'or commits of other branches, tags, stashes or work trees.',
  nothing_to_publish: () => 'There are no changes since the conversation started.',
  default_branch: () => 'It is the default branch. Choose another one.',
  repository_archived: () =>
    'The repository is archived at its host, so nobody can push to it. Unarchive it there, or get the changes as a patch (format=patch).',
  branch_protected: ({ message }) => withHostMessage('The git host protects this branch. Choose another one.', message),
  host_refused: ({ message }) => withHostMessage('The git host refused it by a rule of its own.', message),
  branch_checked_out: () =>
    'It is checked out in a work tree of the repository. Check out another branch there, or choose another branch here.',
  branch_moved: () => 'It has commits that this conversation did not push. Choose another one.',
  branch_name_conflict: () => "Its name conflicts with another branch: a repository can't have both `a` and `a/b`. Choose another one.",
  branch_name_too_long: () => 'Its name is too long for the repository. Choose a shorter one.',
  push_forbidden: ({ message }) =>
    withHostMessage("The deployment's credential may read the repository, but not push to it. Allow pushes, and publish again.", message),
  pull_request_forbidden: () => "The deployment's credential may push, but not open pull requests. Allow it there, and publish again.",
  drafts_unsupported: () => 'Its host has no drafts for this repository. Publish again without draft.',
  nothing_to_merge: () => 'There is nothing to merge: the base branch has all commits already, or the repository has no other branch.',
  snapshot_failed: ({ exitCode, output }) => endText([
    `Git could not read the work tree${exitCode === null ? '' : `: its exit code was ${exitCode}`}.`,
    'Remove the cause in the sandbox. If git lacks a program, such as git-lfs, use an image that has it.',
  ], output),
  snapshot_damaged: () => 'What git sent from the sandbox is damaged or not complete. Run git fsck in its work tree, and try again.',
  history_incomplete: () =>
    'Its history is not complete in the sandbox, because a shallow or partial one was merged. '
    + 'Fetch the rest there (git fetch --unshallow, or --refetch for a partial one), and try again.',
  object_refused: ({ message, check, object, path }) =>
    `Git refuses ${path === null ? `the object ${object}` : quoted(path)}: ${message} (${check}). `
    + 'The git host may refuse it, too. Correct it in the sandbox, also in the commits since the start.',
} satisfies ReasonSentences;

function withHostMessage(sentence: string, message: string): string {
  return message === '' ? sentence : `${sentence} The host says: ${asSentence(message)}`;
}

/** Why a sandbox was moved, for reasons without data. */
export const movedBecause = {
  paused_by_owner: () => 'Paused on request.',
  paused_by_administrator: () => 'Paused by an administrator.',
  resumed_by_owner: () => 'Resumed on request.',
  resumed_by_administrator: () => 'Resumed by an administrator.',
  woken_by_access: () => 'Resumed because it was accessed.',
  woken_by_conversation: () => 'Resumed because a conversation needs it.',
  deleted_by_owner: () => 'Deleted on request.',
  deleted_by_administrator: () => 'Deleted by an administrator.',
  deleted_with_conversation: () => 'Deleted because the conversation that used it was ended.',
  frozen_outside: () => "It was frozen by something that is not in Skep's records.",
  vanished: () => 'The runtime does not have it any more.',
  host_restarted: () => 'Its host was restarted while it ran.',
  being_removed: () => 'The runtime is removing it, or failed to remove it.',
  pause_refused: () => 'The runtime left the sandbox running.',
  freeze_refused: () => 'Not all processes of the sandbox could be frozen, so they all continue.',
  pool_spec_changed: () => 'Its spec has changed, or has no pool any more.',
  pool_full: () => 'The pool has enough members without it.',
} satisfies ReasonSentences;

export const keyFailures = {
  key_name_taken: ({ name }) => `There is a key with the name ${quoted(name)} already. Revoke it first, or choose another name.`,
  key_not_found: ({ id }) => `There is no key ${quoted(id)} that this key may revoke.`,
  keys_unsupported: () => 'This deployment does not manage its keys by the API. Ask its administrator for one.',
  login_code_invalid: () =>
    'This login link was used before, or it is older than ten minutes. Make a new one on the server: skep dashboard',
} satisfies { readonly [C in keyof FailureContexts]?: (context: FailureContexts[C]) => string };
