import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { createHttpServer, type HttpServerOptions } from '../../../src/adapters/http/index.ts';
import { createSystemClock } from '../../../src/adapters/clock/system-clock.ts';
import { createSkep } from '../../../src/composition/create-skep.ts';
import type { DiskSpace } from '../../../src/domain/disk-pressure.ts';
import { sandboxSpec, type SandboxSpecInput } from '../../../src/domain/sandbox-spec.ts';
import type { GitProvider } from '../../../src/ports/git-provider.ts';
import type { LogFields } from '../../../src/ports/logger.ts';
import { Host } from '../../application/conversations/host.ts';
import {
  createMemoryAgentProtocol, createMemoryAuth, createMemoryCheckouts, createMemoryGitProvider, createMemoryProbe,
  type MemoryAgentScript, type MemoryCommand, MemoryEngine,
} from '../../doubles/memory/index.ts';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import { type Answer, createClient } from '../../support/client.ts';
import { doublesModule } from '../../support/doubles-module.ts';
import { createOpenApiChecker } from '../../support/openapi.ts';

/** The error that each part throws instead of doing its work, or a promise of it, for which the part waits. A test sets it. */
export interface Faults {
  git?: unknown;
  runtime?: unknown;
  store?: unknown;
  events?: unknown;
  /** Holds each listing of a repository until it resolves. */
  hold?: Promise<void>;
}

export interface Line extends LogFields {
  readonly level: string;
  readonly message: string;
}

export interface WorldOptions {
  readonly server?: HttpServerOptions;
  readonly specs?: readonly SandboxSpecInput[];
  readonly limits?: { readonly running?: number; readonly runningPerOwner?: number; readonly conversationsPerOwner?: number; readonly executionsPerSandbox?: number };
  /** The disk usage that the runtime reports. */
  readonly disk?: DiskSpace | null;
  /** What the agent does in a turn. Without it, the agent says `heard: <the message>`. */
  readonly script?: MemoryAgentScript;
  /** What commands in sandboxes do. Without it, no command exists. */
  readonly command?: MemoryCommand;
  /** A git provider before the one of the world. */
  readonly firstProvider?: GitProvider;
  readonly answerWithinMs?: number;
}

export const plainSpec: SandboxSpecInput = {
  id: 'plain',
  command: ['run', '--all'],
  initialEnv: { CI: '1', GIT_TOKEN: 'a-token-that-nobody-may-see' },
  ports: [{ name: 'AGENT_SERVER', port: 8000 }],
};

/** A spec with an agent. */
export const coderSpec: SandboxSpecInput = { id: 'coder', agent: { protocol: 'acp', command: ['agent'], env: {}, secrets: [], authMethod: null, permissions: 'ask', startWithinMs: 60_000, turnTimeoutMs: 3_600_000, permissionTimeoutMs: 86_400_000 } };

export const repository = {
  path: 'acme/shop',
  defaultBranch: 'main',
  files: [
    {
      path: '.skep/microagents/deploy/aws.md',
      createdAt: Date.UTC(2020, 1, 29, 12),
      content: '---\ntriggers: [deploy]\ntype: knowledge\n---\n# Deploy\n',
    },
    { path: '.skep/microagents/README.md', createdAt: 0 },
  ],
};

/** Starts a deployment with memory adapters behind a real server on loopback. */
export async function createWorld({ server: serverOptions = {}, specs = [plainSpec], limits = {}, ...options }: WorldOptions = {}) {
  const { disk = null, script, command, firstProvider, answerWithinMs = 2000 } = options;
  const clock = createSystemClock();
  const auth = createMemoryAuth(clock);
  const lines: Line[] = [];
  const write = (level: string) => (fields: LogFields, message: string) => void lines.push({ ...fields, level, message });
  const logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  const faults: Faults = {};
  const engine = new MemoryEngine(undefined, command);
  engine.disk = disk;
  const provider = createMemoryGitProvider({ hosts: ['git.example.org'], repositories: [repository] });
  const listFiles: typeof provider.listFiles = async (name, query, signal) => {
    lines.push({ level: 'test', message: 'a listing begins' });
    signal?.addEventListener('abort', () => lines.push({ level: 'test', message: 'the client went away' }));
    await faults.hold;
    return await provider.listFiles(name, query, signal);
  };
  const memoryStore = createInMemoryStore();
  const checkouts = createMemoryCheckouts();
  checkouts.put('acme/shop', { defaultBranch: 'main', branches: { main: {}, 'feature/one': {} } });
  const doubles = doublesModule({
    auth, clock, logger, checkouts, specList: specs.map(sandboxSpec),
    gitProvider: [...(firstProvider === undefined ? [] : [firstProvider]), failing({ ...provider, listFiles }, ['listFiles', 'readFile', 'find', 'check'], () => faults.git)],
    runtime: failing(new Host(engine).runtime().runtime, ['freeze', 'stop', 'resume'], () => faults.runtime),
    store: {
      ...memoryStore,
      sandboxes: failing(memoryStore.sandboxes, ['search', 'insert'], () => faults.store),
      conversations: failing(memoryStore.conversations, ['search'], () => faults.store),
      events: failing(memoryStore.events, ['read', 'latest'], () => faults.events),
    },
    agentProtocol: [createMemoryAgentProtocol(script === undefined ? {} : { script })],
    probe: createMemoryProbe(),
  });
  const skep = await createSkep({ limits, answerWithinMs, modules: [doubles] });
  const keys = {
    ann: auth.issue({ userId: 'ann', keyName: 'ann-laptop', access: 'full' }),
    ben: auth.issue({ userId: 'ben', keyName: 'ben-ci', access: 'full' }),
    admin: auth.issue({ userId: 'root', keyName: 'admin', access: 'admin' }),
    limited: auth.issue({ userId: 'ann', keyName: 'ann-limited', access: 'full', repositories: ['other/*'] }),
    reader: auth.issue({ userId: 'ann', keyName: 'ann-dashboard', access: 'read' }),
  };
  const server = await createHttpServer(skep, { port: 0, drainMs: 5000, ...serverOptions });
  const connections = new Set<Socket>();
  const onSocket = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    if (socket.localPort !== server.port) return;
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  };
  subscribe('net.server.socket', onSocket);
  const checker = createOpenApiChecker(await (await fetch(`${server.url}/openapi.json`)).json());

  /** Checks each response against the published document. */
  const client = (key: string | null) => {
    const send = createClient(server.url, key);
    return async (method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer> => {
      const answer = await send(method, path, body, headers);
      checker.check(method, path, answer);
      return answer;
    };
  };
  return {
    url: server.url, port: server.port, server, skep, store: memoryStore, auth, engine, provider, checkouts, faults, lines, keys, checker, client,
    ann: client(keys.ann),
    /** The server's ends of the open connections. */
    connections,
    async close() {
      unsubscribe('net.server.socket', onSocket);
      await server.close();
      await skep.close();
    },
  };
}

/** Starts a deployment that is closed at the end of the test. */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const world = await createWorld(options);
  onTestFinished(async () => await world.close());
  return world;
}

export type World = Awaited<ReturnType<typeof createWorld>>;

/** The port, with methods that fail as long as `fault` returns an error. */
function failing<T extends object>(port: T, methods: readonly (keyof T)[], fault: () => unknown): T {
  return new Proxy(port, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      const bound: unknown = member.bind(target);
      if (typeof bound !== 'function' || !methods.some((method) => method === name)) return bound;
      return async (...args: unknown[]) => {
        const error = await fault();
        if (error !== undefined) throw error;
        return await bound(...args);
      };
    },
  });
}
