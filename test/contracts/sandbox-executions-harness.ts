import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import type { ExecutionState } from '../../src/domain/execution.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type {
  ExecutionStart, OpenExecution, OpenExecutionStart, OutputStream, SandboxExecutions,
} from '../../src/ports/sandbox-executions.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../src/ports/sandbox-runtime.ts';
import { type ContractCase, runAndClose } from './contract.ts';
import { waitFor } from './sandbox-runtime-harness.ts';

/** The permitted differences between the executions of sandbox runtimes. */
export interface SandboxExecutionsTraits {
  /** The runtime's capability `freeze`. */
  readonly freeze: boolean;
  /** Do commands continue after the end of the process that started them? */
  readonly durable: boolean;
  /** Is a terminal durable, because it runs in the sandbox? Or attached by the engine, refused, or only simulated? */
  readonly terminals: 'durable' | 'attached' | 'refused' | 'simulated';
  /** Can the sandbox's commands see the folder of its executions? Then the harness names it. */
  readonly folder: 'visible' | 'hidden';
}

/**
 * A command to run in a sandbox.
 *
 * - `copies`: copies its standard input to its standard output, and ends with 0 at the end of the input.
 * - `speaks`: writes `out\n` to its standard output and `err\n` to its standard error, and ends with 7.
 * - `numbers`: writes {@link numberedBytes} bytes to its standard output, see {@link checkNumbered}, line by line.
 * - `floods`: writes {@link floodBytes} zero bytes to its standard output, and ends with 0.
 * - `sleeps`: writes `ready\n` to its standard output, and does not end by itself.
 * - `beats`: writes `ready\n` to its standard output, and a growing number to the file `beat`, by a child in its own session.
 * - `shows its terminal`: writes the rows and columns of its terminal as a line, at the beginning and after each change.
 * - `tells`: writes the value of the variable `EXTRA` to its standard output, as a line, and the line `here` to the file `where`.
 * - `missing`: the command does not exist. `ends itself`: sends SIGTERM to itself.
 */
export type ExecutionCommand =
  | 'copies' | 'speaks' | 'numbers' | 'floods' | 'sleeps' | 'beats' | 'shows its terminal' | 'tells' | 'missing' | 'ends itself';

/** More bytes than any runtime keeps. */
export const floodBytes = 160 << 20;
const lines = 20_000;
const lineBytes = 8;
export const numberedBytes = lines * lineBytes;

/** Returns lines with the numbers from 0, each with seven digits. */
export function numberedLines(): readonly string[] {
  return Array.from({ length: lines }, (_, line) => `${String(line).padStart(lineBytes - 1, '0')}\n`);
}

/** Checks that the bytes are the end of {@link numberedLines} from this offset. */
export function checkNumbered(got: string, from = 0): void {
  const expected = numberedLines().join('').slice(from);
  if (got === expected) return;
  const at = Array.from(expected).findIndex((character, index) => got[index] !== character);
  const excerpt = JSON.stringify(got.slice(Math.max(0, at - 24), at + 24));
  assert.fail(`${got.length} bytes instead of ${expected.length} from ${from} on; they differ after ${at}: ${excerpt}`);
}

const beating = 'n=0; while :; do n=$((n+1)); echo $n > beat.new && mv beat.new beat; sleep 0.01; done';

/** The commands for a sandbox with a POSIX shell, `cat`, `dd`, `mv` and `sleep`, and with `stty` for terminals. */
export const executionCommands: Readonly<Record<ExecutionCommand, readonly string[]>> = {
  copies: ['cat'],
  speaks: ['sh', '-c', 'echo out; echo err >&2; exit 7'],
  numbers: ['sh', '-c', `n=0; while [ $n -lt ${lines} ]; do printf '%07d\\n' $n; n=$((n+1)); done`],
  floods: ['dd', 'if=/dev/zero', 'bs=65536', `count=${floodBytes / 65_536}`],
  sleeps: ['sh', '-c', 'echo ready; exec sleep 100000'],
  beats: ['sh', '-c', `if command -v setsid >/dev/null; then setsid sh -c '${beating}' & else sh -c '${beating}' & fi; echo ready; wait`],
  'shows its terminal': ['sh', '-c', "trap 'stty size' WINCH; stty size; while :; do sleep 0.02; done"],
  tells: ['sh', '-c', 'printf "%s\\n" "$EXTRA"; echo here > where'],
  missing: ['no-such-program-anywhere'],
  'ends itself': ['sh', '-c', 'kill -TERM $$; sleep 1000'],
};

export interface SandboxExecutionsHarness {
  /** Returns a new runtime object for the harness's engine. The harness closes it at the end. */
  readonly open: () => Promise<SandboxRuntime>;
  /** Returns the launch of a sandbox with a new id, whose own command keeps running. */
  readonly launch: () => SandboxLaunch;
  /**
   * Returns the launch of a running sandbox that several cases use, one after another, because it is cheaper than a sandbox for each. They
   * leave commands and files behind. Not set if each case gets its own sandbox. After a case has failed, the next one needs another sandbox.
   */
  readonly shared?: () => Promise<SandboxLaunch>;
  readonly commands: Readonly<Record<ExecutionCommand, readonly string[]>>;
  /** Returns the folder of executions as the sandbox's commands see it. Only called if it is visible. */
  readonly folder?: (id: string) => string;
  /** Returns the content of a file in the sandbox's working directory. Null if there is no file. */
  readonly readFile: (id: string, name: string) => Promise<string | null>;
  /** Removes everything. */
  readonly close: () => Promise<void>;
}

/** The tools of a case: a running sandbox, and short forms of frequent calls. */
export interface ExecutionsStage extends SandboxExecutionsHarness {
  readonly traits: SandboxExecutionsTraits;
  readonly runtime: SandboxRuntime;
  readonly launched: SandboxLaunch;
  readonly sandboxId: string;
  /** Starts a command, by default with pipes and no input. */
  readonly start: (command: ExecutionCommand, more?: Partial<ExecutionStart>, runtime?: SandboxRuntime) => Promise<Execution>;
  /** Starts a command and holds its streams. */
  readonly openCommand: (command: ExecutionCommand, more?: Partial<OpenExecutionStart>) => Promise<Opened & { readonly id: string }>;
  /** Returns a random integer below the limit, from the case's seed. */
  readonly random: (limit: number) => number;
}

/** An execution, as one runtime object sees it. */
export interface Execution {
  readonly id: string;
  readonly begun: ExecutionState;
  readonly state: () => Promise<ExecutionState>;
  readonly ended: () => Promise<ExecutionState>;
  /** Waits for the end, and asserts the exit code. */
  readonly endsWith: (exitCode: number) => Promise<void>;
  /** Reads all bytes from an offset until the command ends. */
  readonly rest: (after?: number, stream?: OutputStream) => Promise<string>;
  /** Reads at least `bytes` bytes from an offset, and then stops. */
  readonly some: (bytes: number, after?: number, stream?: OutputStream) => Promise<string>;
  readonly write: (content: string | Uint8Array, close?: boolean) => Promise<void>;
  readonly signal: (name: string) => Promise<void>;
  readonly resize: (cols: number, rows: number) => Promise<void>;
  readonly remove: () => Promise<void>;
  /** Returns the same execution, as another runtime object sees it. */
  readonly by: (runtime: SandboxRuntime) => Execution;
}

/** An execution whose streams the case holds. */
export interface Opened {
  readonly execution: OpenExecution;
  readonly write: (text: string) => Promise<void>;
  /** Reads the next bytes of the output, or fewer if the output ends. */
  readonly read: (bytes: number) => Promise<string>;
}

export function opened(execution: OpenExecution): Opened {
  const input = execution.stdin.getWriter();
  const output = execution.stdout.getReader();
  let ahead = '';
  return {
    execution,
    write: (text) => input.write(Buffer.from(text)),
    async read(bytes) {
      for (let next = { done: false }; ahead.length < bytes && !next.done; ) {
        const { value, done } = await output.read();
        ahead += Buffer.from(value ?? []).toString('latin1');
        next = { done };
      }
      const got = ahead.slice(0, bytes);
      ahead = ahead.slice(bytes);
      return got;
    },
  };
}

/** Starts the command `beats`, and waits until it has written a heartbeat. */
export async function startBeating({ start, readFile, sandboxId }: ExecutionsStage): Promise<Execution> {
  const before = await readFile(sandboxId, 'beat');
  const execution = await start('beats');
  await execution.some(1);
  await waitFor(`the command in ${sandboxId} writes a heartbeat after ${before}`, () => readFile(sandboxId, 'beat'), (beat) => beat !== before);
  return execution;
}

type Condition = 'if it freezes' | 'if terminals are real' | 'if terminals are durable' | 'if terminals are refused' | 'unless terminals are refused';

const conditions: Readonly<Record<Condition, (traits: SandboxExecutionsTraits) => boolean>> = {
  'if it freezes': ({ freeze }) => freeze,
  'if terminals are real': ({ terminals }) => terminals === 'durable' || terminals === 'attached',
  'if terminals are durable': ({ terminals }) => terminals === 'durable',
  'if terminals are refused': ({ terminals }) => terminals === 'refused',
  'unless terminals are refused': ({ terminals }) => terminals !== 'refused',
};

/** Cases with `own sandbox` leave it frozen or stopped. Cases with a condition apply only to some runtimes. */
export type ExecutionsCase = readonly [
  name: string, run: (stage: ExecutionsStage) => Promise<void>, ...tags: readonly ('own sandbox' | Condition)[],
];

/** Turns the cases that apply into contract cases. Each case gets its own harness, and a running sandbox, which it may share with others. */
export function executionCases(
  createHarness: () => Promise<SandboxExecutionsHarness>, traits: SandboxExecutionsTraits, cases: readonly ExecutionsCase[],
): ContractCase[] {
  const applying = cases.filter(([, , ...tags]) => tags.every((tag) => tag === 'own sandbox' || conditions[tag](traits)));
  return applying.map(([name, run, ...tags]) => ({
    name,
    async run() {
      const harness = await createHarness();
      const seed = randomInt(2 ** 31);
      await runAndClose(async () => {
        const runtime = await harness.open();
        const launched = await (!tags.includes('own sandbox') && harness.shared?.()) || await startSandbox(harness, runtime);
        try {
          await run(createStage(harness, traits, runtime, launched, seed));
        } catch (error) {
          if (error instanceof Error) error.message = `with the seed ${seed}: ${error.message}`;
          throw error;
        }
      }, harness.close);
    },
  }));
}

async function startSandbox(harness: SandboxExecutionsHarness, runtime: SandboxRuntime): Promise<SandboxLaunch> {
  const launched = harness.launch();
  const observed = await runtime.start(launched, () => {}, neverAborts);
  assert.equal(observed.state, 'running', JSON.stringify(observed.reason));
  return launched;
}

function createStage(
  harness: SandboxExecutionsHarness, traits: SandboxExecutionsTraits, runtime: SandboxRuntime, launched: SandboxLaunch, seed: number,
): ExecutionsStage {
  let state = seed;
  return {
    ...harness, traits, runtime, launched, sandboxId: launched.id,
    async start(command, more = {}, by = runtime) {
      const executionId = `exec-${randomBytes(6).toString('hex')}`;
      const request = { executionId, command: harness.commands[command], stdin: false, tty: null, ...more };
      const begun = await by.executions.start(launched.id, request, neverAborts);
      return seen(by.executions, launched.id, request.executionId, begun);
    },
    async openCommand(command, more = {}) {
      const executionId = `exec-${randomBytes(6).toString('hex')}`;
      const start = { executionId, command: harness.commands[command], ...more };
      return { id: start.executionId, ...opened(await runtime.executions.open(launched.id, start, neverAborts)) };
    },
    random(limit) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff;
      return Math.floor((state / 2 ** 31) * limit);
    },
  };
}

function seen(executions: SandboxExecutions, sandboxId: string, id: string, begun: ExecutionState): Execution {
  const output = (after: number, stream: OutputStream): Promise<ReadableStream<Uint8Array>> =>
    executions.output(sandboxId, id, { stream, after, follow: true }, neverAborts);
  return {
    id, begun,
    state: () => executions.state(sandboxId, id),
    ended: () => executions.ended(sandboxId, id, neverAborts),
    async endsWith(exitCode) {
      const state = await executions.ended(sandboxId, id, neverAborts);
      assert.equal(state.exitCode, exitCode, `the execution ends with ${exitCode}, but its state is ${JSON.stringify(state)}`);
    },
    rest: async (after = 0, stream = 'stdout') => (await buffer(await output(after, stream))).toString('latin1'),
    async some(bytes, after = 0, stream = 'stdout') {
      let got = '';
      if (bytes === 0) return got;
      for await (const chunk of await output(after, stream)) {
        got += Buffer.from(chunk).toString('latin1');
        if (got.length >= bytes) break;
      }
      return got;
    },
    async write(content, close = false) {
      await executions.write(sandboxId, id, new Blob([Buffer.from(content)]).stream(), close, neverAborts);
    },
    signal: (name) => executions.signal(sandboxId, id, name),
    resize: (cols, rows) => executions.resize(sandboxId, id, { cols, rows }),
    remove: () => executions.remove(sandboxId, id),
    by: ({ executions: others }) => seen(others, sandboxId, id, begun),
  };
}
