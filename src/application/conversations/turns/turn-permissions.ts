import { chooseOption, type PermissionRequest, timeLeftToAnswer } from '../../../domain/permission.ts';
import { isEnded } from '../../../domain/conversation.ts';
import type { Reason } from '../../../domain/reason.ts';
import { onAbort } from '../../../ports/abort-signals.ts';
import type { AgentPermission } from '../../../ports/agent-protocol.ts';
import { interval, retryThroughStoreOutage, timeout } from '../../timers.ts';
import { type Change, changeConversation } from '../conversation-records.ts';
import type { StepDeps } from '../conversation-reconciler.ts';
import { limitSize, type TurnRecorder } from './turn-recorder.ts';
import { permissionWithdrawal } from './turn-changes.ts';
import type { TurnWatch } from './turn-watch.ts';
import type { TurnParams } from './turn.ts';

/** How often to check for the owner's choice, if the log does not notify about new events. */
const checkEveryMs = 5000;

interface TurnPermissionsOptions extends Pick<TurnParams, 'conversation' | 'sandbox' | 'recorded' | 'signal'> {
  readonly recorder: TurnRecorder;
  readonly watch: TurnWatch;
  /** Returns true if the turn continues without this object, which then writes nothing. */
  readonly continuesElsewhere: () => Promise<boolean>;
}

/** Answers an agent's permission requests by the policy, or asks the owner, one request at a time. */
export class TurnPermissions {
  readonly #deps: StepDeps;
  readonly #options: TurnPermissionsOptions;
  #previous: Promise<unknown> = Promise.resolve();

  constructor(deps: StepDeps, options: TurnPermissionsOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Resolves to the id of the chosen option; null if the request is withdrawn, or the policy finds no option. */
  async ask(asked: AgentPermission, signal: AbortSignal): Promise<string | null> {
    const { conversation: { permissionPolicy: policy }, recorded, recorder } = this.#options;
    const request = { permissionId: recorder.nextPermissionId(), ...limitSize(asked) };
    const answered = recorded.permissions.get(request.permissionId) ?? null;
    if (answered !== null) return answered.optionId;
    if (policy !== 'ask') return this.#answerByPolicy(policy, request);
    const answer = this.#previous.then(() => this.#askOwner(request, signal));
    this.#previous = answer.catch(() => {});
    return await answer;
  }

  #answerByPolicy(policy: 'allow' | 'deny', request: PermissionRequest): string | null {
    const { recorded, recorder } = this.#options;
    const { permissionId } = request;
    const optionId = chooseOption(policy, request.options)?.optionId ?? null;
    const reason: Reason = { code: optionId === null ? 'permission_not_offered' : 'permission_by_policy', policy };
    if (!recorded.permissions.has(permissionId)) recorder.note({ kind: 'permission_requested', data: request }, 'agent');
    recorder.note({ kind: 'permission_answered', data: { permissionId, optionId } }, 'skep', reason);
    return optionId;
  }

  async #askOwner(request: PermissionRequest, signal: AbortSignal): Promise<string | null> {
    if (signal.aborted) return null;
    const { store, clock } = this.#deps;
    const { conversation, sandbox, recorded, recorder, watch, continuesElsewhere, signal: ends } = this.#options;
    const { permissionId } = request;
    const withinMs = sandbox.spec.agent?.permissionTimeoutMs ?? Number.MAX_SAFE_INTEGER;
    const { promise, resolve } = Promise.withResolvers<string | null>();
    const withdraw = (): void => resolve(null);
    using opened = new DisposableStack();
    opened.use(onAbort(signal, withdraw));
    opened.use(watch.waitForUser());
    // In the log, the request must come after the agent's earlier output.
    await recorder.settled();
    const wasRequested = recorded.permissions.has(permissionId);
    const before = wasRequested ? recorded.lastSequence : await retryThroughStoreOutage(clock, ends, () => store.events.latest());
    const check = (): void => void this.#checkAnswer(permissionId, before, resolve);
    opened.defer(store.events.subscribe(({ conversationIds }) => conversationIds.has(conversation.id) && check()));
    if (!wasRequested && !(await this.#request(request))) return null;
    if (wasRequested) check();
    opened.use(interval(clock, checkEveryMs, check));
    // An earlier process may have requested it.
    const open = conversation.permission?.permissionId === permissionId ? conversation.permission : request;
    const limit = opened.use(timeout(clock, timeLeftToAnswer(open, withinMs, clock.now())));
    opened.use(onAbort(limit.signal, withdraw));
    const optionId = await promise;
    const reason: Reason = limit.signal.aborted ? { code: 'permission_unanswered', withinMs } : { code: 'permission_withdrawn' };
    if (optionId !== null) watch.wake();
    else if (!(await continuesElsewhere())) await this.#withdraw(permissionId, reason);
    return optionId;
  }

  async #request(request: PermissionRequest): Promise<boolean> {
    let isWritten = false;
    await this.#change((conversation) => {
      isWritten = conversation.permission?.permissionId === request.permissionId;
      if (isWritten || conversation.turn === null || isEnded(conversation)) return null;
      isWritten = true;
      return {
        to: { permission: { ...request, requestedAt: this.#deps.clock.now() }, executionStatus: 'waiting_for_permission' },
        actor: 'agent',
        reason: null,
        events: [{ kind: 'permission_requested', data: request }],
      };
    });
    return isWritten;
  }

  async #change(change: Change): Promise<void> {
    const { conversation: { id }, signal } = this.#options;
    await retryThroughStoreOutage(this.#deps.clock, signal, () => changeConversation(this.#deps, id, change));
  }

  async #checkAnswer(permissionId: string, after: number, answer: (optionId: string | null) => void): Promise<void> {
    const { id: conversationId, ownerId } = this.#options.conversation;
    try {
      const events = await this.#deps.store.events.read({ ownerId, conversationId, kinds: ['permission_answered'] }, after, 100);
      for (const { kind, data } of events) {
        if (kind === 'permission_answered' && data.permissionId === permissionId) answer(data.optionId);
      }
    } catch {
      // The next check tries again.
    }
  }

  async #withdraw(permissionId: string, reason: Reason): Promise<void> {
    await this.#change(({ permission }) => (permission?.permissionId === permissionId ? permissionWithdrawal(permission, reason) : null));
  }
}
