import { optionOf, type PermissionRequest } from '../../../domain/agent.ts';
import type { Conversation } from '../../../domain/conversation.ts';
import type { AgentPermission } from '../../../ports/agent-protocol.ts';
import { interval } from '../../timers.ts';
import type { ConversationRecords } from '../conversation-records.ts';
import type { RecorderDeps, TurnRecorder } from './turn-recorder.ts';

/** The answer is looked for so often; it is told at once where it is given in this process. */
const lookEveryMs = 5000;

/** Where an owner's choice is waited for. */
interface Asked {
  readonly permissionId: string;
  readonly answer: (optionId: string | null) => void;
}

/**
 * Answers what an agent asks leave for in a turn: by the conversation's policy, or by its owner. One request at a time is
 * put to the owner; the others wait for their turn.
 */
export class TurnPermissions {
  readonly #deps: RecorderDeps;
  readonly #conversation: Conversation;
  readonly #records: ConversationRecords;
  readonly #recorder: TurnRecorder;
  #asked: Asked | null = null;
  #before: Promise<unknown> = Promise.resolve();

  constructor(deps: RecorderDeps, conversation: Conversation, records: ConversationRecords, recorder: TurnRecorder) {
    this.#deps = deps;
    this.#conversation = conversation;
    this.#records = records;
    this.#recorder = recorder;
  }

  /** The id of the option that was chosen; null where the request is withdrawn or the policy finds none to choose. */
  async ask(asked: AgentPermission, signal: AbortSignal): Promise<string | null> {
    const { permissionPolicy: policy } = this.#conversation;
    const request = { permissionId: this.#deps.random.id('perm'), ...asked };
    if (policy !== 'ask') return this.#byPolicy(policy, request);
    const answer = this.#before.then(() => this.#byOwner(request, signal));
    this.#before = answer.catch(() => {});
    return await answer;
  }

  /** The owner has chosen, and it is written down. */
  answered(permissionId: string, optionId: string): void {
    if (this.#asked?.permissionId === permissionId) this.#asked.answer(optionId);
  }

  #byPolicy(policy: 'allow' | 'deny', request: PermissionRequest): string | null {
    const { permissionId } = request;
    const optionId = optionOf(policy, request.options)?.optionId ?? null;
    const reason = optionId === null ? `the agent offers nothing that the conversation's policy, ${policy}, could choose` : `by the conversation's policy: ${policy}`;
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
    let leave: (() => void) | null = null;
    try {
      // What was said before comes before it in the log.
      await this.#recorder.settled();
      const before = await events.latest();
      if (!(await this.#request(request))) return null;
      leave = interval(clock, lookEveryMs, () => void this.#look(permissionId, before, resolve));
      const optionId = await promise;
      if (optionId === null) await this.#withdraw(permissionId);
      return optionId;
    } finally {
      leave?.();
      this.#asked = null;
      signal.removeEventListener('abort', withdrawn);
    }
  }

  async #request(request: PermissionRequest): Promise<boolean> {
    const written = await this.#records.change(this.#conversation.id, ({ turn, deletedAt }) =>
      turn === null || deletedAt !== null
        ? null
        : { to: { permission: request, executionStatus: 'waiting_for_permission' }, actor: 'agent', reason: null, events: [{ kind: 'permission_requested', data: request }] },
    );
    return written !== null;
  }

  /** Finds the choice in the log, where it was written by another process, or by this one which was not told so. */
  async #look(permissionId: string, after: number, answer: Asked['answer']): Promise<void> {
    const { id: conversationId, ownerId } = this.#conversation;
    try {
      const events = await this.#deps.events.read({ ownerId, conversationId, kinds: ['permission_answered'] }, after, 100);
      for (const { kind, data } of events) if (kind === 'permission_answered' && data.permissionId === permissionId) answer(data.optionId);
    } catch {
      // It is looked for again.
    }
  }

  async #withdraw(permissionId: string): Promise<void> {
    await this.#records.change(this.#conversation.id, ({ permission }) =>
      permission?.permissionId === permissionId
        ? {
            to: { permission: null, executionStatus: 'running' },
            actor: 'skep',
            reason: 'the turn was cancelled, or the agent no longer asks',
            events: [{ kind: 'permission_answered', data: { permissionId, optionId: null } }],
          }
        : null,
    );
  }
}
