import type { api } from '../../client/index.ts';

/** What decides when a chat ends. */
export interface ChatState {
  /** `history`: the events from before this chat are being read. `over`: the agent can't be talked with or answered any more. */
  readonly phase: 'history' | 'starting' | 'ready' | 'over';
  /** `left`: the person leaves the chat. */
  readonly input: 'open' | 'ended' | 'left';
  /** The number of lines that have not taken effect yet. */
  readonly pendingWork: number;
  /** The accepted messages, and whether their turn has ended. That event may come before the response that accepts the message. */
  readonly turns: ReadonlyMap<string, 'open' | 'ended'>;
  /** The permission that the agent has requested, if nobody has answered yet. */
  readonly permission: api.PermissionRequestedEventData | null;
  /** Whether a turn or a line of this chat has failed. */
  readonly hasFailed: boolean;
}

export const firstState: ChatState = {
  phase: 'history', input: 'open', pendingWork: 0, turns: new Map(), permission: null, hasFailed: false,
};

/** Returns the exit code with which the chat ends now; null if it continues. */
export function exitCodeOf(state: ChatState): number | null {
  const { phase, input, pendingWork, hasFailed } = state;
  if (phase === 'over') return 1;
  const isDone = phase === 'ready' && input === 'ended' && pendingWork === 0 && !hasOpenTurn(state);
  return input === 'left' || isDone ? Number(hasFailed) : null;
}

export function hasOpenTurn({ turns }: ChatState): boolean {
  return [...turns.values()].includes('open');
}

export function withMessage(state: ChatState, id: string): ChatState {
  return state.turns.has(id) ? state : { ...state, turns: new Map(state.turns).set(id, 'open') };
}

export function withTurnsEnded(state: ChatState): ChatState {
  return { ...state, turns: new Map([...state.turns.keys()].map((id) => [id, 'ended'])) };
}

/** Statuses from which a sandbox does not run again by itself. Null: the sandbox is deleted. */
const lostStatuses: ReadonlySet<string | null> = new Set(['ERROR', 'MISSING', null]);

export function afterEvent(state: ChatState, { kind, data, status_reason: reason }: api.Event): ChatState {
  // A failure from before this chat does not count.
  const isNew = state.phase !== 'history';
  if (kind === 'message' && data.role === 'user') return withMessage(state, data.message_id);
  // An agent can also begin to work without a message.
  if (kind === 'turn_started') return withMessage(state, data.message_id);
  if (kind === 'turn_ended') {
    // The message is sent again, in another turn.
    if (reason?.code === 'message_requeued') return state;
    const hasFailed = state.hasFailed || (isNew && ['failed', 'interrupted'].includes(data.stop_reason));
    return { ...state, hasFailed, turns: new Map(state.turns).set(data.message_id, 'ended') };
  }
  if (kind === 'permission_requested') return { ...state, permission: data };
  if (kind === 'permission_answered') return { ...state, permission: null };
  if (kind === 'sandbox_moved' && lostStatuses.has(data.to)) return { ...withTurnsEnded(state), hasFailed: state.hasFailed || isNew };
  if (kind === 'conversation_archived' || kind === 'conversation_deleted') return { ...state, phase: 'over' };
  return state;
}
