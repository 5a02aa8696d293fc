import type { AnyFailure, FailureCode, FailureContexts, PushedBranch } from '../../domain/failure.ts';
import type { Reason, ReasonCode, ReasonOf } from '../../domain/reason.ts';
import {
  asSentence, bytesProgress, duration, endText, exitText, fileTypeNames, hints, quoted, subjects, textOfCode,
} from './message-formatting.ts';
import {
  argumentReasons, changeReasons, credentialReasons, executionReasons, frontMatterProblems, idleActions, keyFailures, launchReasons,
  movedBecause, nameProblems, probeMissText,
} from './reason-sentences.ts';

export function sentenceOf(reason: Reason): string {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the table is typed by its codes; a later version may know more
  const sentence = reasons[reason.code] as ((reason: Reason) => string) | undefined;
  return sentence === undefined ? textOfCode(reason.code) : sentence(reason);
}

export function sentenceOfFailure({ code, context }: Pick<AnyFailure, 'code' | 'context'>): string {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- code and context of one failure belong together
  const sentence = failures[code] as ((context: AnyFailure['context']) => string) | undefined;
  const text = sentence === undefined ? textOfCode(code) : sentence(context);
  const { pushed }: { readonly pushed?: PushedBranch } = context;
  if (pushed === undefined) return text;
  return `${text} The branch ${quoted(pushed.branch)} is pushed, at ${pushed.commit}. Publish again to do the rest.`;
}

const reasons: { readonly [C in ReasonCode]: (reason: ReasonOf<C>) => string } = {
  explained: ({ message }) => asSentence(message),
  noted: ({ text }) => asSentence(text),
  failure: ({ failure: code, context }) => sentenceOfFailure({ code, context }),
  internal_error: () => 'An internal error occurred. The log of the server has the details.',
  closed: () => 'It is closed.',
  unreachable: () => "It can't be reached.",
  host_unknown: () => "The name of its host can't be resolved.",
  connection_lost: () => 'The connection broke.',
  certificate_untrusted: () => 'Its certificate is not trusted.',
  server_error: ({ status }) => `It returned the status ${status}.`,
  unexpected_status: ({ status }) => `It returned the unexpected status ${status}.`,
  malformed_answer: ({ about }) => `Its response about ${about} is not in the documented format.`,
  too_large: ({ limit }) => `The result is too large. The limit is ${limit}.`,
  disk_full: () => 'The disk is full.',
  process_limit_reached: () => 'The sandbox has no room for another process. End some of them, or raise resources.pids of its spec.',
  command_not_begun: ({ cause }) => withCause('The command did not begin.', cause),
  locked: () => 'Another program has locked it.',
  damaged: ({ recordId }) => `${recordId === undefined ? 'Its data' : `The record ${recordId}`} is damaged. Restore it from a backup.`,

  front_matter: ({ problem, line }) => `The front matter ${frontMatterProblems[problem]}${line === null ? '' : ` See line ${line}.`}`,

  unknown_sandbox_spec: ({ specId }) =>
    specId === null ? 'The deployment has no sandbox spec.' : `There is no sandbox spec ${quoted(specId)}.`,
  sandbox_of_other_user: () => 'must be a sandbox of your own user, because a conversation and its sandbox have the same owner',
  user_id: () => 'must be 1 to 100 characters, without control characters, and must not begin with skep:',
  ...argumentReasons,
  unknown_page: () => 'belongs to a git provider that can no longer be searched; begin with the first page',
  unknown_option: ({ options }) => `must be one of: ${options.join(', ')}`,
  repository_name: ({ problem }) => `The repository name must not ${nameProblems[problem]}`,

  quarantined: ({ keptForMs, specId, ownerId }) =>
    `The store has no record of it. The record was lost, for example because a backup was restored. It is deleted ${duration(keptForMs)} `
    + `after it was stopped, unless an administrator adopts it. Its spec is ${specId ?? 'not known'}, its owner ${ownerId ?? 'not known'}.`,
  adopted: () => 'Adopted from the quarantine. Its files are kept; resume it to continue.',
  claimed_from_pool: ({ instanceId }) => `Taken from the pool of its spec, where its id was ${instanceId}.`,
  idle: ({ tier, afterMs }) => idleActions[tier](duration(afterMs)),
  life_over: ({ afterMs }) => `Deleted because it is ${duration(afterMs)} old, the maximum that its spec or its start request sets.`,
  timeout_over: () => 'Paused because its timeout is over, as its start request says.',
  disk_pressure: ({ usedPercent, limitPercent }) =>
    `Deleted early to free disk space: ${usedPercent}% of the disk was used. The limit is ${limitPercent}%.`,
  made_room: ({ forSandbox, limit, max }) =>
    `Paused to make room for ${forSandbox}: the limit ${limit} (${max}) was reached, and this sandbox was idle for the longest time.`,
  ended_outside: ({ cause }) =>
    withCause("It was ended by something that is not in Skep's records. Its files are kept; resume it to continue.", cause),
  ended_while_frozen: ({ cause }) => withCause('Its processes ended while it was frozen. Its files are kept.', cause),
  still_running: ({ cause, before }) =>
    withCause(withCause('The runtime did not end or freeze its processes, so they still run. Skep tries again.', cause), before),
  pool_member_lost: ({ status, cause }) => withCause(`It is ${status}.`, cause),

  waiting_for_start_slot: () => 'Waiting until other sandboxes have started.',
  pulling_image: ({ image, layers, doneLayers, bytes, doneBytes }) =>
    `Pulling the image ${image}${layers === 0 ? '' : `: ${doneLayers} of ${layers} layers${bytesProgress(doneBytes, bytes)}`}.`,
  creating_sandbox: () => 'Creating the sandbox.',
  starting_command: () => 'Starting its command.',
  runtime_silent: () => 'The runtime does not answer.',
  probe_missed: ({ probe, port, path, miss }) =>
    `The last probe of ${probe} port ${port}${path === null ? '' : ` ${path}`}: ${probeMissText(miss)}.`,
  processes_continued: () => 'Resumed. Its processes continue where they were.',
  processes_restarted: () => 'Resumed. Its processes were started again, with the files that were kept.',
  not_ready_in_time: ({ withinMs, last, output }) =>
    endText([withLast(`It was not ready within ${duration(withinMs)}.`, last), last?.code === 'probe_missed' ? hints.probe : null], output),
  ended_while_starting: ({ output }) => endText(['It ended during the start.'], output),
  ended_while_resuming: ({ output }) => endText(['It ended during the resume.'], output),
  ...launchReasons,

  processes_ended: ({ output }) => endText(['Its processes ended.'], output),
  processes_killed: ({ output }) => endText(['Its processes were killed.'], output),
  process_exited: ({ exitCode, signal, program, phase, output }) =>
    endText([exitText(subjects[phase ?? 'running'], exitCode, signal, program), exitCode === 0 ? hints.lasting : null], output),
  out_of_memory: ({ exitCode, signal, phase, output }) =>
    endText(['It ran out of memory.', exitText(subjects[phase ?? 'running'], exitCode, signal, null), hints.memory], output),
  main_process_ended: ({ cause }) => withCause('Its first process ended, but other processes still run.', cause),

  sandbox_deleted: () => 'The sandbox was deleted.',
  sandbox_lost: ({ status, cause }) => withCause(`The sandbox is ${status}.`, cause),
  step_failed: ({ step, cause }) => withCause(`The start failed at ${step}.`, cause),
  not_done_in_time: ({ withinMs }) => `It did not finish within ${duration(withinMs)}.`,
  fetching_repository: ({ phase, percent }) =>
    `Fetching the repository${phase === null ? '' : `: ${percent ?? 0}% ${phase === 'receiving' ? 'received' : 'unpacked'}`}.`,
  fetching_repository_again: () => 'Fetching the repository again, because the earlier copy was damaged.',
  copying_files: () => 'Copying the files into the sandbox.',
  running_setup_script: ({ executionId }) => `The setup script of the repository is running as the execution ${executionId}.`,
  setup_script_failed: ({ exitCode, cause }) =>
    withCause(`The setup script of the repository failed${exitCode === null ? '' : ` with exit code ${exitCode}`}.`, cause),
  setup_script_unfinished: ({ withinMs }) => `The setup script did not end within ${duration(withinMs)}. It may still run.`,
  setup_script_unconfirmed: ({ cause }) =>
    withCause('It is not known whether the setup script of the repository has started. It may run.', cause),
  microagents_unavailable: ({ cause }) => withCause('The microagents of the repository could not be listed.', cause),
  message_waiting: ({ cause }) => withCause('A message is waiting.', cause),
  messages_dropped: ({ count, cause }) =>
    withCause(`The agent did not get ${count === 1 ? 'one message that was' : `${count} messages that were`} waiting.`, cause),
  keeping_changes: () => 'Its last changes are being kept.',
  changes_not_kept: ({ cause, sandboxId }) => {
    const sentence = withCause('Its last changes were not kept when it was archived.', cause);
    return sandboxId === undefined ? sentence : `${sentence} So its sandbox ${sandboxId} stays. Get what you need from it, then delete the `
      + 'sandbox or the conversation. Or remove the cause, and archive the conversation again.';
  },
  conversation_archived: () =>
    'The conversation is archived, which can\'t be undone. Start a new one, or get the changes of this one as a patch (format=patch).',
  start_failed: ({ cause }) => withCause('The start of the conversation failed.', cause),
  queue_full: ({ limit, max }) => `The queue is full: at most ${max} ${limit} can wait. Wait until the agent has handled some.`,

  turn_failed: ({ stopReason }) => `The turn ended: ${stopReason}.`,
  interrupted_by_shutdown: () => 'Skep was shut down during the turn.',
  message_requeued: () => 'Skep was shut down, or the agent ended, before the agent got the message. It is sent again.',
  message_withdrawn: () => 'The message was withdrawn before the agent got it.',
  interrupted_by_restart: () => 'Skep stopped during the turn. It does not repeat the message: send it again to continue.',
  interrupted_by_archiving: () => 'The conversation was archived during the turn.',
  sandbox_stopped: ({ cause }) => withCause('The sandbox was stopped during the turn.', cause),
  turn_silent: ({ withinMs }) => `The agent sent nothing for ${duration(withinMs)}, so the turn was ended.`,
  permission_unanswered: ({ withinMs }) => `Nobody answered within ${duration(withinMs)}.`,
  permission_by_policy: ({ policy }) => `Decided by the policy of the conversation: ${policy}.`,
  permission_not_offered: ({ policy }) => `The agent offers no option for the policy of the conversation: ${policy}.`,
  permission_withdrawn: () => 'The turn was cancelled, or the agent does not ask any more.',

  agent_not_named: () => 'The sandbox spec names no agent. Choose a spec that names one.',
  agent_protocol_unknown: ({ protocol }) =>
    `The deployment does not support the agent protocol ${protocol}. Correct the agent of the spec.`,
  agent_start_failed: ({ cause }) => withCause('The agent could not be started.', cause),
  agent_not_ready_in_time: ({ withinMs, last }) =>
    withLast(`The agent had no session within ${duration(withinMs)}, the start_within of its spec.`, last),
  agent_ended: ({ cause, exitCode, output }) => {
    const exit = exitCode === null ? null : `Its exit code was ${exitCode}.`;
    return endText([cause === null ? 'The agent ended.' : sentenceOf(cause), exit], output === '' ? undefined : output);
  },
  agent_running: ({ output }) => endText(['The agent was running.'], output),
  agent_exited: () => 'The agent has ended.',
  agent_error: ({ message }) => (message === '' ? 'The agent reported an error.' : `The agent reported an error: ${message}`),
  agent_session_refused: ({ message }) => `The agent refused a session: ${message}`,
  agent_session_not_found: () =>
    "The agent's earlier session could not be loaded. The agent starts a new session, without the earlier messages.",
  agent_session_closed: () => 'The session with the agent was closed.',
  agent_connection_lost: () => 'The connection to the agent broke.',
  agent_version_unsupported: ({ offered, supported }) =>
    `The agent speaks version ${offered} of its protocol, and Skep version ${supported}. Use another release of the agent.`,
  agent_output_invalid: ({ maxLines }) =>
    `The agent wrote more than ${maxLines} lines in a row that are not messages of its protocol. Check its command in the spec.`,
  agent_line_too_long: ({ maxBytes }) => `The agent wrote a line of more than ${maxBytes} bytes.`,
  agent_output_not_stored: () => 'The output of the agent could not be stored.',
  agent_stop_reason_unknown: ({ stopReason }) => `The agent ended the turn for an unknown reason: ${stopReason}.`,
  agent_busy: () => 'Another turn is running.',
  ...credentialReasons,
  ...movedBecause,
  ...executionReasons,
  ...changeReasons,
};

const failures: { readonly [C in FailureCode]: (context: FailureContexts[C]) => string } = {
  unauthorized: () =>
    'The API key is missing, unknown, expired or revoked. Send a valid one as X-Session-API-Key, or as Authorization: Bearer.',
  forbidden: ({ action, access, isUnlimited = false }) => {
    const limit = isUnlimited ? ' that is not limited to repositories' : '';
    return `This API key may not ${action}.${access === null ? '' : ` Use one with ${access} access${limit}.`}`;
  },
  ...keyFailures,
  repository_not_found: ({ repository }) =>
    `The repository ${quoted(repository)} does not exist, or the deployment's credential can't see it. `
    + 'Check the name, or give the credential access.',
  repository_forbidden: ({ provider, repository }) =>
    `The deployment's credential for the git provider ${provider} may not read the repository ${quoted(repository)}. Give it access there.`,
  repository_empty: ({ repository, branch }) =>
    `The repository ${quoted(repository)} is empty, so it has no branch ${quoted(branch)}. Push a commit, or select no branch.`,
  branch_not_found: ({ repository, branch }) =>
    `The repository ${quoted(repository)} has no branch ${quoted(branch)}. Select an existing branch, or none for the default branch.`,
  sandbox_not_found: ({ id }) => `There is no sandbox ${quoted(id)}.`,
  conversation_not_found: ({ id }) => `There is no conversation ${quoted(id)}.`,
  permission_not_found: ({ id }) => `The conversation does not wait for the permission ${quoted(id)}. Its events show what it waits for.`,
  port_not_exposed: ({ id, port, exposed }) => `The sandbox ${id} does not expose the port ${port}. Add it to the ports of its spec. `
    + (exposed.length === 0 ? 'Its spec has none.' : `Its spec has ${exposed.join(', ')}.`),
  proxy_off: () => 'The server runs no proxy to the ports of sandboxes. Its administrator can set SKEP_PROXY_PORT.',
  port_closed: ({ id, port }) => `Nothing answers on the port ${port} of the sandbox ${id}. Start a program there, then try again.`,
  port_response_invalid: ({ id, port, problem }) => `The port ${port} of the sandbox ${id} sent an invalid HTTP response: ${problem}.`,
  execution_not_found: ({ id }) => `There is no execution ${quoted(id)} in the sandbox.`,
  file_not_found: ({ path }) => `There is no file or directory ${quoted(path)}.`,
  wrong_file_type: ({ path, fileType }) => `${quoted(path)} is ${fileTypeNames[fileType]}. The request is not possible for this type.`,
  sandbox_not_running: ({ id, status }) =>
    `The sandbox ${id} is ${status}. It has to be RUNNING.${status === 'PAUSED' ? ' Resume it first.' : ''}`,
  sandbox_not_paused: ({ id, status }) =>
    `The sandbox ${id} is ${status}. Only a PAUSED sandbox can be resumed, or one in ERROR or MISSING whose files the runtime has.`,
  sandbox_busy: ({ id, status }) => `The sandbox ${id} is ${status}. Wait until that is done, then try again.`,
  sandbox_in_quarantine: ({ id }) => `The sandbox ${id} is in quarantine. An administrator has to adopt it first.`,
  freeze_unsupported: ({ runtime }) =>
    `The sandbox runtime ${runtime} can't freeze sandboxes here. Pause it with the kind stop instead, which keeps its files.`,
  conversation_not_ready: ({ id, reason }) => withCause(`The conversation ${id} does not accept the request.`, reason),
  output_dropped: ({ oldest }) => `The output before byte ${oldest} is no longer kept. Read from this offset.`,
  input_closed: ({ id }) => `The execution ${quoted(id)} takes no input: it has ended, or its standard input is closed.`,
  conversation_changes_unavailable: ({ id, reason }) => withCause(`The changes of the conversation ${id} can't be shown.`, reason),
  conversation_publish_refused: ({ branch, reason }) => withCause(`Nothing was pushed to the branch ${quoted(branch)}.`, reason),
  listing_unsupported: ({ provider, listing }) => `The git provider ${provider} can't list ${listing}. Enter the name yourself.`,
  pull_requests_unsupported: ({ provider }) =>
    `The git provider ${provider} has no pull requests. Publish without one: that pushes a branch.`,
  pull_request_refused: ({ branch, repository, reason }) =>
    withCause(`No pull request of ${quoted(repository)} was opened or updated for the branch ${quoted(branch)}.`, reason),
  idempotency_conflict: ({ key }) => `The idempotency key ${quoted(key)} was used for another request. Use a new key for a new request.`,
  invalid_request: ({ problems }) => problems.map(({ argument, reason }) => `${argument}: ${sentenceOf(reason)}`).join('; '),
  sandbox_limit_reached: ({ limit, max }) => limit === 'disk'
    ? `More than ${max}% of the disk is used. Delete a sandbox, or try again later.`
    : `The limit ${limit} (${max}) is reached. `
      + `${limit.startsWith('existing') ? 'Delete' : 'Pause or delete'} a sandbox, or try again later.`,
  conversation_limit_reached: ({ limit, max }) => `The limit ${limit} (${max}) is reached. End a conversation, or try again later.`,
  execution_limit_reached: ({ limit, max }) => `The limit ${limit} (${max}) is reached. Delete an execution, or try again later.`,
  rate_limited: ({ limit }) => `Too many requests: the limit ${limit} is reached. Try again later.`,
  internal: ({ incident }) => `An internal error occurred. The log of the server has the details under ${incident}.`,
  provider_unauthorized: ({ provider, ssoUrl }) => ssoUrl === undefined
    ? `The git provider ${provider} refused the deployment's credential. Its administrator has to renew it.`
    : `An organisation of the git provider ${provider} requires single sign-on (SAML). `
      + `The owner of the deployment's token has to authorise it for this organisation${ssoUrl === null ? '.' : `: ${ssoUrl}`}`,
  provider_failed: ({ provider, reason }) => withCause(`The git provider ${provider} failed.`, reason),
  provider_rate_limited: ({ provider }) => `The git provider ${provider} limits the rate of requests. Try again later.`,
  provider_timeout: ({ provider, limitMs }) => `The git provider ${provider} did not answer within ${duration(limitMs)}.`,
  runtime_unavailable: ({ runtime, reason }) => withCause(`The sandbox runtime ${runtime} is not available.`, reason),
  runtime_timeout: ({ runtime, limitMs }) => `The sandbox runtime ${runtime} did not answer within ${duration(limitMs)}.`,
  store_unavailable: ({ reason }) => withCause('The store is not available.', reason),
  shutting_down: () => 'The server is shutting down and accepts no new work. Try again later.',
};

function withLast(sentence: string, last: Reason | null): string {
  return last === null ? sentence : withCause(`${sentence} Last seen:`, last);
}

function withCause(sentence: string, cause: Reason | null): string {
  return cause === null ? sentence : `${sentence} ${sentenceOf(cause)}`;
}
