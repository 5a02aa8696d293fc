import { optionOf, type PermissionRequest } from '../../../domain/agent.ts';
import type { Conversation } from '../../../domain/conversation.ts';
import type { Reason } from '../../../domain/reason.ts';
import type { AgentPermission } from '../../../ports/agent-protocol.ts';
import { interval, throughStoreOutage, timeout } from '../../timers.ts';
import type { Change } from '../conversation-records.ts';
import type { StepDeps } from '../conversation-reconciler.ts';
import type { TurnRecorder } from './turn-recorder.ts';
import type { TurnOf } from './turn.ts';

/** How often to look for an answer that another process wrote. An answer of this process arrives at once. */
const lookEveryMs = 5000;

/** A request that waits for the owner's choice. */
interface Asked {
  readonly permissionId: string;
  readonly answer: (optionId: string | null) => void;
}

/**
 * Answers an agent's requests for permission in a turn: by the conversation's policy, or by its owner. The owner sees one request
 * at a time; the others wait.
 */
export class TurnPermissions {
  readonly #deps: StepDeps;
  readonly #conversation: Conversation;
  readonly #recorder: TurnRecorder;
  readonly #ends: AbortSignal;
  readonly #withinMs: number;
  #asked: Asked | null = null;
  #previous: Promise<unknown> = Promise.resolve();

  constructor(deps: StepDeps, { conversation, sandbox, signal }: TurnOf, recorder: TurnRecorder) {
    this.#deps = deps;
    this.#conversation = conversation;
    this.#recorder = recorder;
    this.#ends = signal;
    this.#withinMs = sandbox.spec.agent?.permissionTimeoutMs ?? Number.MAX_SAFE_INTEGER;
  }

  /** True while a request waits for the owner's choice. */
  get isWaiting(): boolean {
    return this.#asked !== null;
  }

  /** Resolves to the id of the chosen option; null if the request is withdrawn, or the policy finds no option. */
  async ask(asked: AgentPermission, signal: AbortSignal): Promise<string | null> {
    const { permissionPolicy: policy } = this.#conversation;
    const request = { permissionId: this.#deps.random.id('perm'), ...asked };
    if (policy !== 'ask') return this.#byPolicy(policy, request);
    const answer = this.#previous.then(() => this.#byOwner(request, signal));
    this.#previous = answer.catch(() => {});
    return await answer;
  }

  /** The owner has chosen, and it is written. */
  answered(permissionId: string, optionId: string): void {
    if (this.#asked?.permissionId === permissionId) this.#asked.answer(optionId);
  }

  #byPolicy(policy: 'allow' | 'deny', request: PermissionRequest): string | null {
    const { permissionId } = request;
    const optionId = optionOf(policy, request.options)?.optionId ?? null;
    const reason: Reason = { code: optionId === null ? 'permission_not_offered' : 'permission_by_policy', policy };
    this.#recorder.note({ kind: 'permission_requested', data: request }, 'agent');
    this.#recorder.note({ kind: 'permission_answered', data: { permissionId, optionId } }, 'skep', reason);
    return optionId;
  }

  async #byOwner(request: PermissionRequest, signal: AbortSignal): Promise<string | null> {
    if (signal.aborted) return null;
    const { events, clock } = this.#deps;
    const { permissionId } = request;
    const { promise, resolve } = Promise.withResolvers<string | null>();
    const withdrawn = (): void => resolve(null);
    signal.addEventListener('abort', withdrawn, { once: true });
    this.#asked = { permissionId, answer: resolve };
    try {
      // In the log the request comes after what was said before it.
      await this.#recorder.settled();
      const before = await throughStoreOutage(clock, this.#ends, () => events.latest());
      if (!(await this.#request(request))) return null;
      using limit = timeout(clock, this.#withinMs);
      limit.signal.addEventListener('abort', withdrawn, { once: true });
      using _ = interval(clock, lookEveryMs, () => void this.#look(permissionId, before, resolve));
      const optionId = await promise;
      const reason: Reason = limit.signal.aborted
        ? { code: 'permission_unanswered', withinMs: this.#withinMs }
        : { code: 'permission_withdrawn' };
      if (optionId === null) await this.#withdraw(permissionId, reason);
      return optionId;
    } finally {
      this.#asked = null;
      signal.removeEventListener('abort', withdrawn);
    }
  }

  async #request(request: PermissionRequest): Promise<boolean> {
    let isWritten = false;
    await this.#change(({ turn, permission, deletedAt }) => {
      isWritten = permission?.permissionId === request.permissionId;
      if (isWritten || turn === null || deletedAt !== null) return null;
      isWritten = true;
      return {
        to: { permission: request, executionStatus: 'waiting_for_permission' },
        actor: 'agent',
        reason: null,
        events: [{ kind: 'permission_requested', data: request }],
      };
    });
    return isWritten;
  }

  async #change(change: Change): Promise<void> {
    const { clock, records } = this.#deps;
    await throughStoreOutage(clock, this.#ends, () => records.change(this.#conversation.id, change));
  }

  /** Finds the choice in the log if another process wrote it. */
  async #look(permissionId: string, after: number, answer: Asked['answer']): Promise<void> {
    const { id: conversationId, ownerId } = this.#conversation;
    try {
      const events = await this.#deps.events.read({ ownerId, conversationId, kinds: ['permission_answered'] }, after, 100);
      for (const { kind, data } of events) {
        if (kind === 'permission_answered' && data.permissionId === permissionId) answer(data.optionId);
      }
    } catch {
      // The next look tries again.
    }
  }

  async #withdraw(permissionId: string, reason: Reason): Promise<void> {
    await this.#change(({ permission }) =>
      permission?.permissionId === permissionId
        ? {
            to: { permission: null, executionStatus: 'running' },
            actor: 'skep',
            reason,
            events: [{ kind: 'permission_answered', data: { permissionId, optionId: null } }],
          }
        : null,
    );
  }
}
