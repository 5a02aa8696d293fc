import { text } from 'node:stream/consumers';
import type { ConversationReconciler } from '../../../src/application/conversations/conversation-reconciler.ts';
import type { RunExecutionRequest } from '../../../src/application/executions/run-execution.ts';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import { createContainer } from '../../../src/composition/create-skep.ts';
import { type Token, tokens } from '../../../src/composition/wiring/tokens.ts';
import { sandboxSpec } from '../../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import type { SandboxExecutions } from '../../../src/ports/sandbox-executions.ts';
import {
  createManualClock, createMemoryProbe, createMemoryRuntime, createSeededRandom, createSilentLogger, type MemoryCommand, MemoryEngine,
} from '../../doubles/memory/index.ts';
import { doublesModule } from '../../support/doubles-module.ts';
import { until } from '../../support/until.ts';

export interface Faults {
  /** Thrown by a call of this name, after it had its effect if `after` is set. */
  readonly calls: Map<keyof SandboxExecutions, { readonly error: unknown; readonly after?: boolean }>;
}

export const request = (command: readonly string[], changes: Partial<RunExecutionRequest> = {}): RunExecutionRequest =>
  ({ command, env: {}, workingDir: null, timeoutMs: null, stdin: false, tty: null, ...changes });

/** What the commands do: `echo` writes its arguments and ends, `cat` copies its input, `sleep` waits, `tick` writes when the test says so. */
function commandsOf(ticks: (() => Promise<void>)[]): MemoryCommand {
  return async ({ request: { command }, stdin, stdout, signal, env }) => {
    const [name = '', ...words] = command;
    const writer = stdout.getWriter();
    const say = (text: string) => writer.write(new TextEncoder().encode(text));
    const killed = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve());
    });
    if (name === 'echo') await say(`${words.join(' ')}${env['GREETING'] ?? ''}\n`);
    else if (name === 'cat') for await (const bytes of stdin) await writer.write(bytes);
    else if (name === 'tick') ticks.push(() => say('tick\n'));
    if (name === 'sleep' || name === 'tick') await killed;
    return name === 'false' ? 1 : 0;
  };
}

/** The use cases over the memory runtime, with a clock and processes that the test controls. */
export function createExecutionsWorld(options: { readonly executionsPerSandbox?: number; readonly freezeAfterMs?: number } = {}) {
  const { executionsPerSandbox, freezeAfterMs = null } = options;
  const clock = createManualClock();
  const random = createSeededRandom(1);
  const ticks: (() => Promise<void>)[] = [];
  const engine = new MemoryEngine(undefined, commandsOf(ticks));
  const store = createInMemoryStore();
  const faults: Faults = { calls: new Map() };
  const specs = [sandboxSpec({ id: 'plain', rest: { freezeAfterMs, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: null } })];

  async function boot() {
    const closers = new AsyncDisposableStack();
    const limits = executionsPerSandbox === undefined ? {} : { executionsPerSandbox };
    const container = createContainer({ specs, limits, sweepEveryMs: 1000, answerWithinMs: 5000 }, closers);
    const runtime = createMemoryRuntime(engine);
    const executions = failing(runtime.executions, faults);
    container.load(doublesModule({
      runtime: Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(runtime), executions: { value: executions } }) as typeof runtime,
      clock, random, store, probe: createMemoryProbe(), logger: createSilentLogger(),
      conversationReconciler: { enqueue() {}, enqueueUnpromptedWork() {} } as unknown as ConversationReconciler,
    }));
    const get = <T>({ id }: Token<T>): Promise<T> => container.getAsync<T>(id);
    const skep = { executions: await get(tokens.executions), sandboxes: await get(tokens.sandboxes), sweeper: await get(tokens.sweeper) };
    return { ...skep, shutdown: async () => await closers.disposeAsync() };
  }

  /** Starts a sandbox of Ann, and returns when it is RUNNING. */
  async function sandbox({ sandboxes }: Awaited<ReturnType<typeof boot>>): Promise<string> {
    const { id } = await sandboxes.start('ann', { specId: null });
    await until(() => sandboxes.get('ann', id), ({ status }) => status === 'RUNNING', 60_000);
    return id;
  }

  return { clock, engine, store, faults, ticks, boot, sandbox };
}

function failing(executions: SandboxExecutions, { calls }: Faults): SandboxExecutions {
  return new Proxy(executions, {
    get: (target, name: keyof SandboxExecutions) => async (...args: never[]) => {
      const fault = calls.get(name);
      if (fault !== undefined && fault.after !== true) throw fault.error;
      const result = await (target[name] as (...args: never[]) => Promise<unknown>)(...args);
      if (fault !== undefined) throw fault.error;
      return result;
    },
  });
}

/** A world with one process, and a RUNNING sandbox of Ann. */
export async function started(options: Parameters<typeof createExecutionsWorld>[0] = {}) {
  const world = createExecutionsWorld(options);
  const skep = await world.boot();
  const sandboxId = await world.sandbox(skep);
  const { executions } = skep;
  const get = (id: string) => executions.get('ann', sandboxId, id);
  const ended = (id: string) => until(() => get(id), ({ status }) => status !== 'running', 60_000);
  const output = async (id: string, after = 0) =>
    await text((await executions.output('ann', sandboxId, id, { stream: 'stdout', after, follow: true }, neverAborts)).bytes);
  return { world, skep, executions, sandboxId, get, ended, output };
}
