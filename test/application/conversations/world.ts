import {
  createManualClock, createMemoryGitProvider, createMemoryProbe, createSeededRandom, type MemoryCommand, MemoryEngine,
} from '../../doubles/memory/index.ts';
import { parseYamlFrontMatter } from '../../../src/adapters/front-matter/yaml-front-matter.ts';
import { createPinoLogger } from '../../../src/adapters/logger/pino-logger.ts';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import { createMemoryAgentProtocol } from '../../doubles/memory/agent.ts';
import type { MemoryAgentScript } from '../../doubles/memory/agent-session.ts';
import type { StartConversationRequest } from '../../../src/application/conversations/conversations.ts';
import { createContainer } from '../../../src/composition/create-skep.ts';
import type { Rules } from '../../../src/composition/wiring/use-case-modules.ts';
import { type Token, tokens } from '../../../src/composition/wiring/tokens.ts';
import type { AgentSpec } from '../../../src/domain/agent.ts';
import type { Event, EventData, EventKind } from '../../../src/domain/event.ts';
import type { ExecutionLimits } from '../../../src/domain/execution.ts';
import type { SandboxLimits } from '../../../src/domain/admission-limits.ts';
import { sandboxSpec, type SandboxSpecInput } from '../../../src/domain/sandbox-spec.ts';
import type { AgentProtocol, OpenAgentSession } from '../../../src/ports/agent-protocol.ts';
import type { GitProvider } from '../../../src/ports/git-provider.ts';
import type { RepositoryCheckouts } from '../../../src/ports/repository-checkouts.ts';
import { SnapshotRefusal } from '../../../src/ports/work-tree-snapshot.ts';
import type { SandboxRuntime } from '../../../src/ports/sandbox-runtime.ts';
import type { Store } from '../../../src/ports/store.ts';
import { doublesModule } from '../../support/doubles-module.ts';
import { Faults, Mortal } from '../mortal.ts';
import { Host } from './host.ts';

export const agent: AgentSpec = {
  protocol: 'acp', command: ['agent', 'acp'], env: { LEVEL: '3' }, secrets: [], authMethod: null, permissions: 'ask',
  startWithinMs: 20_000, turnTimeoutMs: 3_600_000, permissionTimeoutMs: 86_400_000,
};

export const plain: StartConversationRequest = {
  title: null, sandboxId: null, sandboxSpecId: null, selectedRepository: null, selectedBranch: null, initialMessage: null, permissionPolicy: null, patterns: null,
};

export const said = (text: string) => ({ content: [{ type: 'text' as const, text }] });

export const shop = {
  path: 'acme/shop',
  defaultBranch: 'main',
  files: [{ path: '.skep/microagents/style.md', createdAt: 1 }, { path: '.skep/microagents/deploy/aws.md', createdAt: 2 }],
};

export interface WorldOptions {
  readonly spec?: Partial<SandboxSpecInput>;
  readonly agent?: Partial<AgentSpec> | null;
  readonly limits?: Partial<SandboxLimits & ExecutionLimits>;
  readonly whenFull?: 'refuse' | 'pause_idle';
  readonly script?: MemoryAgentScript;
  readonly beforeOpen?: (request: OpenAgentSession) => Promise<void> | void;
  readonly remembers?: boolean;
  readonly protocol?: AgentProtocol;
  readonly checkouts?: Partial<RepositoryCheckouts>;
  readonly providers?: readonly GitProvider[];
  readonly secrets?: Readonly<Record<string, string>>;
  readonly store?: (store: Store) => Store;
  readonly keepForMs?: number;
  readonly drainTimeoutMs?: number;
  /** Files of the repository, by their paths. */
  readonly brings?: Readonly<Record<string, string>>;
  /** The command that runs as an execution. */
  readonly command?: MemoryCommand;
  /** The faults of the calls on ports. */
  readonly faults?: Faults;
}

const owner = 'me';

/** Conversations over memory adapters, with a clock, an agent and crashes that the test controls. */
export function createWorld(options: WorldOptions = {}) {
  const clock = createManualClock();
  const random = createSeededRandom(1);
  const engine = new MemoryEngine(undefined, options.command);
  const host = new Host(engine, options.brings);
  const probe = createMemoryProbe();
  const store = (options.store ?? ((made) => made))(createInMemoryStore());
  const logged: string[] = [];
  const logger = createPinoLogger({ level: 'debug', destination: { write: (line) => void logged.push(line) } });
  const spec = sandboxSpec({
    id: 'plain', ready: { probe: { kind: 'none' }, withinMs: 10_000 }, ...options.spec, agent: options.agent === null ? null : { ...agent, ...options.agent },
  });
  const provider = createMemoryGitProvider({ repositories: [shop] });
  const checkedOut: string[] = [];
  const checkouts: RepositoryCheckouts = {
    name: 'memory',
    checkOut: async ({ repository, branch, remote }) => {
      checkedOut.push(`${repository} ${branch} ${remote.url}`);
      return { branch: branch ?? 'main', commit: 'c0ffee', archive: new Blob([`tar of ${repository}`]).stream() };
    },
    checkBranch: async () => {},
    findBranch: async () => ({ commit: null, isDefault: false }),
    takeSnapshot: async () => await Promise.reject(new SnapshotRefusal({ code: 'git_missing' })),
    listChanges: async () => await Promise.reject(new SnapshotRefusal({ code: 'git_missing' })),
    check: async () => ({ ok: true, detail: '' }),
    close: async () => {},
    ...options.checkouts,
  };
  const handed: string[] = [];
  const script: MemoryAgentScript = options.script ?? (async (turn) => turn.say(`heard: ${turn.message.content.at(-1)?.text ?? ''}`));
  const protocol = options.protocol ?? createMemoryAgentProtocol({
    ...options,
    script: (turn) => {
      handed.push(turn.message.content.map(({ text }) => text).join('|'));
      return script(turn);
    },
  });

  /** A process of Skep over the same store and engine. */
  function boot(faults = new Faults()) {
    const made = host.runtime();
    const mortal = new Mortal(faults, made.cut);
    const own = mortal.clock(clock);
    const executions = mortal.port('executions', made.runtime.executions);
    const runtime = mortal.port('runtime', Object.assign(Object.create(made.runtime) as SandboxRuntime, { executions }));
    const ports = { sandboxes: mortal.port('sandboxes', store.sandboxes), conversations: mortal.port('conversations', store.conversations) };
    const closers = new AsyncDisposableStack();
    closers.defer(() => runtime.close());
    const rules = { sweepEveryMs: 1000, answerWithinMs: 5000, startsAtOnce: 4, whenFull: options.whenFull ?? 'refuse' };
    const container = createContainer({ specs: [spec], ...rules, ...(options.limits !== undefined && { limits: options.limits }) }, closers);
    container.load(doublesModule({
      runtime, probe, random, logger,
      clock: own,
      store: { ...store, ...ports, events: mortal.port('events', store.events) },
      gitProvider: (options.providers ?? [provider]).map((provider) => mortal.port('git', provider)),
      agentProtocol: [mortal.port('protocol', protocol)],
      checkouts: mortal.port('checkouts', checkouts),
      // Loaded beforehand, because tests count iterations of the event loop.
      parseFrontMatter: async (text) => parseYamlFrontMatter(text),
      secrets: { get: (name) => options.secrets?.[name] ?? null },
      rules: {
        ...container.get<Rules>(tokens.rules.id),
        poolStartsAtOnce: 1, orphanGraceMs: 2000, rememberDeletedMs: 60_000,
        ...(options.keepForMs !== undefined && { keepEventsForMs: options.keepForMs }),
        drainTimeoutMs: options.drainTimeoutMs ?? 0,
      },
    }));
    const get = <T>({ id }: Token<T>): T => container.get<T>(id);
    return {
      mortal, runtime,
      sandboxReconciler: get(tokens.sandboxReconciler),
      sandboxes: get(tokens.sandboxes),
      agents: get(tokens.agents),
      agentMemory: get(tokens.agentMemory),
      conversationReconciler: get(tokens.conversationReconciler),
      conversations: get(tokens.conversations),
      executions: get(tokens.executions),
      sweeper: get(tokens.sweeper),
      events: get(tokens.events),
      close: async () => await closers.disposeAsync(),
    };
  }

  async function eventsOf(conversationId?: string): Promise<readonly Event[]> {
    return await store.events.read({ ownerId: owner, ...(conversationId !== undefined && { conversationId }) }, 0, 1000);
  }

  return { clock, engine, host, probe, provider, store, logged, checkedOut, handed, boot, log: eventsOf };
}

export type World = ReturnType<typeof createWorld>;

/** A world with one process. */
export function createOne(options: WorldOptions = {}) {
  const world = createWorld(options);
  return { ...world, ...world.boot(options.faults) };
}

/** Returns the kind and the data of the events of these kinds. */
export function told<K extends EventKind>(events: readonly Event[], ...kinds: readonly K[]): (EventData[K] & { readonly kind: K })[] {
  return events.filter(({ kind }) => kinds.includes(kind as K)).map(({ kind, data }) => ({ kind, ...data }) as EventData[K] & { readonly kind: K });
}

/** Returns the steps of a start that are in the log. */
export function stepsIn(events: readonly Event[]): string[] {
  return events.flatMap((event) => (event.kind === 'start_step' ? event.data.to : []));
}

/** Runs the event loop until the condition holds. The memory adapters answer without any time passing. */
export async function until<T>(ask: () => T | Promise<T>, wanted: (answer: T) => boolean = Boolean): Promise<T> {
  for (let turns = 0; ; turns += 1) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    if (turns > 5000) throw new Error(`it never came to that; last: ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export { calm, passSeconds } from '../port-calls.ts';
