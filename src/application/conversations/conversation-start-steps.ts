import { gitIdentityOf, type StartPoint } from '../../domain/change.ts';
import { microagentsEventData } from '../../domain/applicable-microagents.ts';
import { nextStartStep, type StartStep, startSteps, statusAfter } from '../../domain/conversation-next-step.ts';
import { type Conversation, type ConversationStartStatus, foldersOfOthers, isEnded, workingDirOf } from '../../domain/conversation.ts';
import { isFailure, isFailureOf, reasonOfError, reasonOfFailure, Refusal } from '../../domain/failure.ts';
import type { Reason } from '../../domain/reason.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { ProgressReporter } from '../progress-reporter.ts';
import { timeout } from '../timers.ts';
import { findMicroagents } from './conversation-microagents.ts';
import type { StepDeps } from './conversation-reconciler.ts';
import { changeConversation, type ConversationChange } from './conversation-records.ts';
import { openAgent } from './open-agent.ts';
import { hasSetupScript, runSetupScript } from './run-setup-script.ts';

const prepareWithinMs = 30 * 60_000;

const listWithinMs = 2 * 60_000;

type StepOf<K extends StartStep['kind']> = Extract<StartStep, { readonly kind: K }>;

/** Returns false if there is no step now. A step is written before it is taken, and can be repeated. A failed step ends the start. */
export async function takeStartStep(deps: StepDeps, conversation: Conversation, signal: AbortSignal): Promise<boolean> {
  const { conversationSandboxes, agents, logger } = deps;
  const { id, startStatus } = conversation;
  const sandbox = await conversationSandboxes.find(conversation);
  const step = nextStartStep(conversation, sandbox, deps.clock.now());
  try {
    return await takeStep(deps, step, conversation, sandbox, signal);
  } catch (error) {
    if (signal.aborted) return true;
    if (isFailureOf(error, 'store_unavailable')) throw error;
    // A step that failed because the sandbox was paused or lost meanwhile is decided again.
    if (sandbox !== null && (await conversationSandboxes.hasChanged(conversation, sandbox))) return true;
    const cause = reasonOfError(error);
    const fields = { conversation: id, step: startStatus, error };
    if (cause === null) logger.error(fields, 'a step of a conversation start failed');
    // The record has the reason, but not what is behind it, such as the text of git.
    else if (isFailure(error) && error.cause !== undefined) logger.warn(fields, 'a step of a conversation start failed');
    await agents.end(id);
    await advance(deps, conversation, 'ERROR', { code: 'step_failed', step: startStatus, cause: cause ?? { code: 'internal_error' } });
    return true;
  }
}

async function takeStep(
  deps: StepDeps, step: StartStep, conversation: Conversation, sandbox: Sandbox | null, signal: AbortSignal,
): Promise<boolean> {
  const { conversationSandboxes } = deps;
  switch (step.kind) {
    case 'none':
      conversationSandboxes.addWaiting(conversation);
      return false;
    case 'record':
      await advance(deps, conversation, step.status, step.reason);
      return true;
    case 'start-sandbox':
      await deps.sandboxes.startWithId(conversation.ownerId, conversation.sandboxId, {
        specId: conversation.sandboxSpecId, parameters: conversation.sandboxParameters,
      });
      return true;
    case 'resume-sandbox':
      return await resumeSandbox(deps, conversation);
    case 'await-sandbox':
      return await conversationSandboxes.waitForChange(conversation, sandbox, signal);
    case 'prepare-repository':
      await withStepTimeout(deps, prepareWithinMs, step.sandbox, signal, async (signal) => {
        const startPoint = await prepareRepository(deps, step, conversation, signal);
        const hasScript = await hasSetupScript(deps, conversation, step.sandbox, signal);
        const next = hasScript ? 'RUNNING_SETUP_SCRIPT' : statusAfter(conversation, step.sandbox);
        await advance(deps, conversation, next, null, { to: { startPoint } });
      });
      return true;
    case 'run-setup-script':
      await runSetup(deps, step, conversation, signal);
      return true;
    case 'list-microagents':
      await listMicroagents(deps, step, conversation, signal);
      return true;
    case 'start-agent':
      await openAgent(deps, conversation, step.sandbox, signal, ({ startStatus }) =>
        startStatus === 'STARTING_AGENT' ? { startStatus: 'READY', executionStatus: 'idle', statusReason: null } : null,
      );
      return true;
  }
}

/** If the runtime does not resume the sandbox now, the start waits, and a later sweep tries again. */
async function resumeSandbox(deps: StepDeps, conversation: Conversation): Promise<boolean> {
  try {
    await deps.conversationSandboxes.resume(conversation);
    return true;
  } catch (error) {
    if (!isFailureOf(error, 'runtime_unavailable', 'runtime_timeout')) throw error;
    deps.conversationSandboxes.addWaiting(conversation);
    await writeProgress(deps, conversation, reasonOfFailure(error));
    return false;
  }
}

/** Copies a work tree into the sandbox, and returns its start point. The credential stays on this machine. Repeatable. */
async function prepareRepository(
  deps: StepDeps, { repository, sandbox }: StepOf<'prepare-repository'>, conversation: Conversation, signal: AbortSignal,
): Promise<StartPoint> {
  const { repositories, checkouts, runtime, clock } = deps;
  const write = (reason: Reason): Promise<boolean> => writeProgress(deps, conversation, reason);
  await using progress = new ProgressReporter({ clock, write, written: null, quietMs: 0 });
  const { provider, path } = repositories.atLocation(repository);
  const remote = await provider.remote(path, signal);
  const author = gitIdentityOf(conversation.ownerId);
  const request = {
    provider: provider.name, repository: path, remote, branch: conversation.selectedBranch, author,
    foldersOfOthers: foldersOfOthers(conversation),
  };
  const { archive, commit, branch } = await checkouts.checkOut(request, (reason) => progress.report(reason), signal);
  progress.report({ code: 'copying_files' });
  try {
    await runtime.putFiles(sandbox.instanceId, workingDirOf(conversation, sandbox.spec), archive, signal);
  } catch (error) {
    // An unread stream must be cancelled. If the runtime has begun to read it, this does nothing.
    await archive.cancel(error).catch(() => {});
    throw error;
  }
  return { commit, branch };
}

/** The start continues even if the script fails. */
async function runSetup(
  deps: StepDeps, { sandbox }: StepOf<'run-setup-script'>, conversation: Conversation, signal: AbortSignal,
): Promise<void> {
  const { data, reason } = await runSetupScript(deps, conversation, sandbox, signal);
  await advance(deps, conversation, statusAfter(conversation, sandbox), reason, { events: [{ kind: 'setup_script', data }] });
}

/** A failure of the git host does not end the start. */
async function listMicroagents(
  deps: StepDeps, { repository, sandbox }: StepOf<'list-microagents'>, conversation: Conversation, signal: AbortSignal,
): Promise<void> {
  const next = statusAfter(conversation, sandbox);
  try {
    const find = (signal: AbortSignal) => findMicroagents(deps, repository, signal);
    const { microagents, leftOut } = await withStepTimeout(deps, listWithinMs, sandbox, signal, find);
    const events = leftOut.length === 0 ? [] : [{ kind: 'microagents', data: microagentsEventData([], leftOut) } as const];
    await advance(deps, conversation, next, null, { to: { microagents }, events });
  } catch (error) {
    const cause = signal.aborted || isFailureOf(error, 'store_unavailable') ? null : reasonOfError(error);
    if (cause === null) throw error;
    const event = { kind: 'microagents', data: microagentsEventData([], []) } as const;
    await advance(deps, conversation, next, { code: 'microagents_unavailable', cause }, { to: { microagents: [] }, events: [event] });
  }
}

/** Runs the step with a time limit, and keeps the sandbox awake meanwhile. */
async function withStepTimeout<T>(
  deps: StepDeps, ms: number, sandbox: Sandbox, signal: AbortSignal, step: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using limit = timeout(deps.clock, ms);
  using _ = deps.conversationSandboxes.keepAwake(sandbox);
  try {
    return await step(AbortSignal.any([signal, limit.signal]));
  } catch (error) {
    if (signal.aborted || !limit.signal.aborted) throw error;
    throw new Refusal({ code: 'not_done_in_time', withinMs: ms }, { cause: error });
  }
}

async function advance(
  deps: StepDeps,
  { id, startStatus: from }: Conversation,
  startStatus: ConversationStartStatus,
  reason: Reason | null,
  { to = {}, events = [] }: Partial<Pick<ConversationChange, 'to' | 'events'>> = {},
): Promise<void> {
  await changeConversation(deps, id, (conversation) =>
    !isEnded(conversation) && conversation.startStatus === from && startSteps[from].includes(startStatus)
      ? { to: { ...to, startStatus, statusReason: reason }, actor: 'skep', reason, events }
      : null,
  );
}

async function writeProgress(deps: StepDeps, { id, startStatus: step }: Conversation, reason: Reason): Promise<boolean> {
  const written = await changeConversation(deps, id, (conversation) =>
    conversation.startStatus === step && !isEnded(conversation) ? { to: { statusReason: reason }, actor: 'skep', reason: null } : null,
  );
  return written !== null;
}
