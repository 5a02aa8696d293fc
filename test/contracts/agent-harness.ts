import assert from 'node:assert/strict';
import type { Message } from '../../src/domain/conversation.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { AgentClient, AgentPermission, AgentProtocol, AgentSession, AgentStreams, AgentTurn, AgentUpdate } from '../../src/ports/agent-protocol.ts';
import { type ContractCase, withTimeout } from './contract.ts';

/** The permitted differences between agent protocols. */
export interface AgentTraits {
  /** Can an agent find its earlier sessions after a restart? */
  readonly sessions: 'found_again' | 'forgotten';
  /** Can a turn continue over the streams of another process? */
  readonly resumes: boolean;
}

/**
 * How an agent behaves from its start.
 *
 * - `speaks`: speaks the protocol, and does what messages tell it (see `AgentStep`). It finds its earlier sessions, if the protocol can.
 * - `forgets`: like `speaks`, but it finds no earlier session.
 * - `refuses`: refuses every session with the message `no room`.
 * - `ends`: ends at once.
 * - `silent`: never says anything.
 * - `other_version`: speaks an unknown version of the protocol.
 */
export type AgentBehaviour = 'speaks' | 'forgets' | 'refuses' | 'ends' | 'silent' | 'other_version';

export interface RunningAgent {
  readonly streams: AgentStreams;
  /** Resolves when the agent has ended. */
  readonly gone: Promise<void>;
  /** Kills the agent. */
  readonly kill: () => void;
}

export interface AgentHarness {
  readonly traits: AgentTraits;
  readonly protocol: AgentProtocol;
  /** Starts an agent. All agents of a harness share their stored sessions. */
  readonly start: (behaviour: AgentBehaviour) => Promise<RunningAgent>;
  /** Ends every agent. */
  readonly close: () => Promise<void>;
}

/** A client that records the updates and the permission requests. */
export interface RecordingClient extends AgentClient {
  readonly updates: AgentUpdate[];
  readonly requests: AgentPermission[];
  /** Returns the joined text of the agent. */
  readonly said: () => string;
  /** Resolves to the next update. */
  readonly next: () => Promise<AgentUpdate>;
  /** Resolves when the agent has begun to work without a message. */
  readonly unprompted: Promise<void>;
}

export interface OpenedAgent {
  readonly session: AgentSession;
  readonly client: RecordingClient;
  readonly agent: RunningAgent;
  readonly prompt: (message: Message) => Promise<AgentTurn>;
}

export interface AgentStage extends AgentHarness {
  readonly open: (client?: Partial<AgentClient>, sessionId?: string | null, behaviour?: AgentBehaviour) => Promise<OpenedAgent>;
}

export type AgentCase = readonly [name: string, run: (stage: AgentStage) => Promise<void>];

export function recordingClient({ update, permission }: Partial<AgentClient> = {}): RecordingClient {
  const updates: AgentUpdate[] = [];
  const requests: AgentPermission[] = [];
  const waiting: ((update: AgentUpdate) => void)[] = [];
  const { promise: unprompted, resolve: onUnpromptedWork } = Promise.withResolvers<void>();
  return {
    unprompted,
    onUnpromptedWork,
    updates,
    requests,
    said: () => updates.map((one) => (one.kind === 'message_chunk' ? one.text : '')).join(''),
    next: () => withTimeout('an update', new Promise((resolve) => waiting.push(resolve))),
    async update(one) {
      updates.push(one);
      for (const resolve of waiting.splice(0)) resolve(one);
      await update?.(one);
    },
    async permission(request, signal) {
      requests.push(request);
      return permission === undefined ? assert.fail('unexpected permission request') : await permission(request, signal);
    },
  };
}

/** Turns cases that need a stage into contract cases. Each case gets its own harness. */
export function agentStageCases(createHarness: () => Promise<AgentHarness>, cases: readonly AgentCase[]): ContractCase[] {
  return cases.map(([name, run]) => ({
    name,
    async run() {
      const harness = await createHarness();
      try {
        await run({ ...harness, open: (...options) => open(harness, ...options) });
      } finally {
        await harness.close();
      }
    },
  }));
}

async function open(
  { protocol, start }: AgentHarness,
  client: Partial<AgentClient> = {},
  sessionId: string | null = null,
  behaviour: AgentBehaviour = 'speaks',
): Promise<OpenedAgent> {
  const agent = await start(behaviour);
  const recording = recordingClient(client);
  const request = { streams: agent.streams, workingDir: '/tmp', authMethod: null, sessionId, client: recording };
  const session = await withTimeout('a session', protocol.open(request, neverAborts));
  return { session, client: recording, agent, prompt: (message) => withTimeout('the turn ends', session.prompt(message)) };
}
