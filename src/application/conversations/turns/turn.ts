import type { TurnStopReason } from '../../../domain/agent.ts';
import { statusAfterTurn } from '../../../domain/conversation-next-step.ts';
import type { Conversation, Message, QueuedMessage } from '../../../domain/conversation.ts';
import type { EventActor, EventBody } from '../../../domain/event.ts';
import type { Reason } from '../../../domain/reason.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import type { AgentTurn } from '../../../ports/agent-protocol.ts';
import type { LiveAgent } from '../../agents/live-agent.ts';
import { onAbort, throughStoreOutage } from '../../timers.ts';
import type { Change, Changed } from '../conversation-records.ts';
import type { StepDeps } from '../conversation-reconciler.ts';
import type { MicroagentContext } from './microagent-context.ts';
import { TurnPermissions } from './turn-permissions.ts';
import { TurnRecorder } from './turn-recorder.ts';
import { TurnWatch } from './turn-watch.ts';

/** From the request to cancel a turn until an agent that ignores it is ended. */
const cancelWithinMs = 10_000;

export interface TurnOf {
  readonly conversation: Conversation;
  readonly sandbox: Sandbox;
  readonly queued: QueuedMessage;
  readonly agent: LiveAgent;
  /** What goes before the message; null is nothing. */
  readonly context: MicroagentContext | null;
  /** The sequence number of the newest event before the turn. */
  readonly from: number;
  /** Fires when the turn is to end, and its agent with it. */
  readonly signal: AbortSignal;
}

interface EndedTurn extends AgentTurn {
  readonly actor: EventActor;
}

/** The message leaves the queue in a write before it is sent, and goes back only if it was not sent: it is sent at most once. */
export class Turn {
  readonly #deps: StepDeps;
  readonly #of: TurnOf;
  readonly #recorder: TurnRecorder;
  readonly #permissions: TurnPermissions;
  readonly #watch: TurnWatch;
  readonly #withdrawn = new AbortController();
  #cancelled = false;
  /** Why Skep asked the agent to stop; null if it did not. */
  #silent: Reason | null = null;
  #prompted = false;
  #stopTimeout: () => void = () => {};

  constructor(deps: StepDeps, of: TurnOf) {
    this.#deps = deps;
    this.#of = of;
    this.#recorder = new TurnRecorder({ ...deps, from: of.from, signal: of.signal, memory: of.agent.memory }, of.conversation);
    this.#permissions = new TurnPermissions(deps, of, this.#recorder, () => this.#watch.wake());
    this.#watch = new TurnWatch(deps, {
      ...of,
      isWaiting: () => this.#permissions.isWaiting,
      isHeldBack: () => of.agent.memory.isHeldBack,
      onSilent: (withinMs) => {
        this.#silent = { code: 'turn_silent', withinMs };
        this.#stop();
      },
    });
  }

  /** Asks the agent to stop, and ends the agent if it does not. Idempotent. */
  cancel(): void {
    this.#cancelled = true;
    this.#stop();
  }

  get prompted(): boolean {
    return this.#prompted;
  }

  /** The message as the agent gets it. The log has it as the user wrote it. */
  get #message(): Message {
    const { context, queued: { message } } = this.#of;
    return context === null ? message : { content: [{ type: 'text', text: context.text }, ...message.content] };
  }

  look(): void {
    if (this.#prompted) this.#watch.look();
  }

  #stop(): void {
    if (this.#withdrawn.signal.aborted) return;
    this.#withdrawn.abort();
    if (!this.#prompted) return;
    const { agent } = this.#of;
    this.#stopTimeout = this.#deps.clock.after(cancelWithinMs, () => void agent.kill());
    agent.cancel().catch(() => {});
  }

  /** Resolves when the end is written. The signal ends the agent, and a message that it did not get goes back into the queue. */
  async run(): Promise<void> {
    if (!(await this.#isAwake()) || !(await this.#dequeue())) return;
    const canPrompt = this.#of.agent.alive && !this.#of.signal.aborted;
    if (!canPrompt && !this.#cancelled) await this.#putBack();
    else await this.#end(await this.#prompt());
  }

  /** Notes the activity. From then on no rule pauses the sandbox. Returns false if one just did. */
  async #isAwake(): Promise<boolean> {
    const { conversation, sandbox, signal } = this.#of;
    const { access, sandboxStore, clock } = this.#deps;
    return await throughStoreOutage(clock, signal, async () => {
      await sandboxStore.touch(sandbox.id, clock.now());
      return (await access.find(conversation))?.status === 'RUNNING';
    });
  }

  async #dequeue(): Promise<boolean> {
    const { queued, context } = this.#of;
    const { messageId } = queued;
    let isTaken = false;
    await this.#change(({ deletedAt, turn, queue }) => {
      // A write that failed may have been made.
      isTaken = turn?.messageId === messageId;
      if (isTaken || deletedAt !== null || turn !== null || queue[0]?.messageId !== messageId) return null;
      isTaken = true;
      return {
        to: {
          turn: queued, queue: queue.slice(1), executionStatus: 'running', statusReason: null,
          ...(context !== null && { microagents: context.microagents }),
        },
        actor: 'skep',
        reason: null,
        events: [...(context === null ? [] : [context.event]), { kind: 'turn_started', data: { messageId } }],
      };
    });
    return isTaken;
  }

  async #prompt(): Promise<EndedTurn> {
    const { agent, signal } = this.#of;
    if (this.#cancelled) return { stopReason: 'cancelled', reason: null, actor: 'user' };
    using _ = onAbort(signal, () => void agent.kill());
    this.#prompted = true;
    // The agent gets the message before anything else is done.
    const prompting = agent.prompt(this.#message, {
      update: (update) => {
        this.#watch.noteOutput();
        return this.#recorder.record(update);
      },
      permission: (request, withdrawn) => this.#permissions.ask(request, AbortSignal.any([withdrawn, this.#withdrawn.signal])),
    });
    using watch = this.#watch;
    watch.start();
    try {
      const ended = await prompting;
      // The agent may get its next message, so nothing ends it any more.
      this.#withdrawn.abort();
      this.#stopTimeout();
      await this.#recorder.finish();
      return await this.#judge(ended);
    } catch (error) {
      // What the agent says can't be written, so it must not go on.
      this.#recorder.discard();
      await agent.kill();
      throw error;
    } finally {
      this.#stopTimeout();
    }
  }

  /** Returns who or what ended the turn, as far as the agent does not know it. */
  async #judge(ended: AgentTurn): Promise<EndedTurn> {
    const { conversation, signal } = this.#of;
    const { clock, access } = this.#deps;
    if (signal.aborted) return { stopReason: 'interrupted', reason: { code: 'interrupted_by_shutdown' }, actor: 'skep' };
    // Also an agent that had to be ended, or that reported the request as an error, was cancelled.
    if (this.#cancelled && statusAfterTurn(ended.stopReason) === 'error') return { ...ended, stopReason: 'cancelled', actor: 'user' };
    if (this.#silent !== null && !this.#cancelled) return { stopReason: 'failed', reason: this.#silent, actor: 'skep' };
    if (ended.stopReason !== 'interrupted') return { ...ended, actor: ended.stopReason === 'cancelled' ? 'user' : 'agent' };
    const sandbox = await throughStoreOutage(clock, signal, () => access.find(conversation));
    if (sandbox?.pauseKind !== 'stop' || sandbox.status === 'RESUMING') return { ...ended, actor: 'skep' };
    const { statusReason: cause } = sandbox;
    const actor = cause?.code === 'paused_by_owner' ? 'user' : 'skep';
    return { ...ended, reason: { code: 'sandbox_stopped', cause }, actor };
  }

  async #end({ stopReason, reason, actor }: EndedTurn): Promise<void> {
    const { queued } = this.#of;
    await this.#change(({ turn, permission }) => {
      if (turn?.messageId !== queued.messageId) return null;
      const ended = endOfTurn({ turn, permission }, stopReason, reason, actor);
      return this.#prompted ? ended : { ...ended, to: { ...ended.to, microagents: this.#of.conversation.microagents } };
    });
  }

  async #putBack(): Promise<void> {
    const { queued, conversation: { microagents } } = this.#of;
    await this.#change(({ turn, permission, queue }) => {
      if (turn?.messageId !== queued.messageId) return null;
      const ended = endOfTurn({ turn, permission }, 'interrupted', { code: 'message_requeued' }, 'skep');
      return { ...ended, to: { ...ended.to, queue: [queued, ...queue], executionStatus: 'idle', statusReason: null, microagents } };
    });
  }

  async #change(change: Change): Promise<void> {
    const { conversation, signal } = this.#of;
    await throughStoreOutage(this.#deps.clock, signal, () => this.#deps.records.change(conversation.id, change));
  }
}

interface RunningTurn {
  readonly turn: QueuedMessage;
  readonly permission: Conversation['permission'];
}

/** Returns the change of the record at the end of a turn. An open request for permission is withdrawn. */
export function endOfTurn(running: RunningTurn, stopReason: TurnStopReason, reason: Reason | null, actor: EventActor): Changed {
  const executionStatus = statusAfterTurn(stopReason);
  const statusReason = executionStatus === 'error' ? (reason ?? ({ code: 'turn_failed', stopReason } as const)) : null;
  return { to: { turn: null, permission: null, executionStatus, statusReason }, actor, reason, events: turnEnded(running, stopReason) };
}

export function turnEnded({ turn, permission }: RunningTurn, stopReason: TurnStopReason): EventBody[] {
  const withdrawn: EventBody[] =
    permission === null ? [] : [{ kind: 'permission_answered', data: { permissionId: permission.permissionId, optionId: null } }];
  return [...withdrawn, { kind: 'turn_ended', data: { messageId: turn.messageId, stopReason } }];
}

/** Returns the change of a conversation in which the user ends all work. */
export function endedWork(
  { turn, permission }: Conversation, when: Changed['to'], kind: 'conversation_archived' | 'conversation_deleted',
): Changed {
  const events = turn === null ? [] : turnEnded({ turn, permission }, 'interrupted');
  return { to: { ...when, turn: null, permission: null, queue: [] }, actor: 'user', reason: null, events: [...events, { kind, data: {} }] };
}
