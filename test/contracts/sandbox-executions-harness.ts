import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import type {
  ExecutionStart, ExecutionState, OpenExecution, OpenExecutionStart, OutputStream, SandboxExecutions,
} from '../../src/ports/sandbox-executions.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../src/ports/sandbox-runtime.ts';
import { type ContractCase, runAndClose } from './contract.ts';
import { never } from './sandbox-runtime-harness.ts';
import { bytesOf } from './sandbox-runtime-streams.ts';

/** In what executions of sandbox runtimes may differ. */
export interface SandboxExecutionsTraits {
  /** Do commands go on when the process that started them is gone? */
  readonly durable: boolean;
  /** Where a terminal runs: in the sandbox, so that it goes on as well; at the engine; or nowhere that can be seen. */
  readonly terminals: 'durable' | 'attached' | 'refused' | 'pretended';
}

/**
 * What is run in a sandbox.
 *
 * - `copies`: copies its standard input to its standard output, and ends with 0 when that is over.
 * - `speaks`: writes `out\n` to its standard output and `err\n` to its standard error, and ends with 7.
 * - `numbers`: writes {@link numberedBytes} bytes to its standard output, see {@link checkNumbered}, line by line.
 * - `floods`: writes {@link floodBytes} zero bytes to its standard output, and ends with 0.
 * - `sleeps`: writes `ready\n` to its standard output, and does not end by itself.
 * - `beats`: writes `ready\n` to its standard output, and a growing number to the file `beat`, by a child in a session of its own.
 * - `shows its terminal`: writes the rows and columns of its terminal as a line, at the beginning and each time that they change.
 * - `missing`: the command does not exist. `ends itself`: ends by SIGTERM, which it sends itself.
 */
export type ExecutionCommand =
  | 'copies' | 'speaks' | 'numbers' | 'floods' | 'sleeps' | 'beats' | 'shows its terminal' | 'missing' | 'ends itself';

/** More than any runtime keeps. */
export const floodBytes = 160 << 20;
const lines = 20_000;
const lineBytes = 8;
export const numberedBytes = lines * lineBytes;

/** The lines with the numbers from 0 on, each with seven digits. */
export function numberedLines(): readonly string[] {
  return Array.from({ length: lines }, (_, line) => `${String(line).padStart(lineBytes - 1, '0')}\n`);
}

/** Checks that the bytes are those of {@link numberedLines}, from an offset on to the end. */
export function checkNumbered(got: string, from = 0): void {
  const expected = numberedLines().join('').slice(from);
  if (got === expected) return;
  const at = Array.from(expected).findIndex((character, index) => got[index] !== character);
  const excerpt = JSON.stringify(got.slice(Math.max(0, at - 24), at + 24));
  assert.fail(`${got.length} bytes instead of ${expected.length} from ${from} on; they differ after ${at}: ${excerpt}`);
}

const beating = 'n=0; while :; do n=$((n+1)); echo $n > beat.new && mv beat.new beat; sleep 0.01; done';

/** The commands for whatever has a POSIX shell, `cat`, `dd`, `mv` and `sleep`; for terminals also `stty`. */
export const executionCommands: Readonly<Record<ExecutionCommand, readonly string[]>> = {
  copies: ['cat'],
  speaks: ['sh', '-c', 'echo out; echo err >&2; exit 7'],
  numbers: ['sh', '-c', `n=0; while [ $n -lt ${lines} ]; do printf '%07d\\n' $n; n=$((n+1)); done`],
  floods: ['dd', 'if=/dev/zero', 'bs=65536', `count=${floodBytes / 65_536}`],
  sleeps: ['sh', '-c', 'echo ready; exec sleep 100000'],
  beats: ['sh', '-c', `if command -v setsid >/dev/null; then setsid sh -c '${beating}' & else sh -c '${beating}' & fi; echo ready; wait`],
  'shows its terminal': ['sh', '-c', "trap 'stty size' WINCH; stty size; while :; do sleep 0.02; done"],
  missing: ['no-such-program-anywhere'],
  'ends itself': ['sh', '-c', 'kill -TERM $$; sleep 1000'],
};

export interface SandboxExecutionsHarness {
  readonly traits: SandboxExecutionsTraits;
  /** A new runtime object over the harness's engine, which the harness closes in the end. */
  readonly open: () => Promise<SandboxRuntime>;
  /** What to start: a sandbox of an id that was never given, whose own command goes on. */
  readonly launch: () => SandboxLaunch;
  readonly commands: Readonly<Record<ExecutionCommand, readonly string[]>>;
  /** Where executions are kept in a sandbox, as its commands see it. None if they can't see it, or nothing is kept. */
  readonly folder?: (id: string) => string;
  /** A file of the sandbox's working directory; null if it is not there. */
  readonly readFile: (id: string, name: string) => Promise<string | null>;
  /** Removes everything. */
  readonly close: () => Promise<void>;
}

/** What a case has in hand: a running sandbox, and short forms of what cases say often. */
export interface ExecutionsStage extends SandboxExecutionsHarness {
  readonly runtime: SandboxRuntime;
  readonly launched: SandboxLaunch;
  readonly sandboxId: string;
  /** Starts a command, by default with pipes and no input. */
  readonly start: (command: ExecutionCommand, more?: Partial<ExecutionStart>, runtime?: SandboxRuntime) => Promise<Execution>;
  /** Starts a command and holds its streams. */
  readonly openCommand: (command: ExecutionCommand, more?: Partial<OpenExecutionStart>) => Promise<Opened & { readonly id: string }>;
  /** A whole number below the limit, from the case's seed. */
  readonly random: (limit: number) => number;
}

/** An execution as a case sees it, by a runtime object. */
export interface Execution {
  readonly id: string;
  readonly begun: ExecutionState;
  readonly state: () => Promise<ExecutionState>;
  readonly ended: () => Promise<ExecutionState>;
  /** All bytes from an offset on, until the command has ended. */
  readonly rest: (after?: number, stream?: OutputStream) => Promise<string>;
  /** At least so many bytes from an offset on; then it leaves. */
  readonly some: (bytes: number, after?: number, stream?: OutputStream) => Promise<string>;
  readonly write: (content: string | Uint8Array, close?: boolean) => Promise<void>;
  readonly signal: (name: string) => Promise<void>;
  readonly resize: (cols: number, rows: number) => Promise<void>;
  readonly remove: () => Promise<void>;
  /** The same execution, by another runtime object. */
  readonly by: (runtime: SandboxRuntime) => Execution;
}

/** An execution whose streams the case holds. */
export interface Opened {
  readonly execution: OpenExecution;
  readonly write: (text: string) => Promise<void>;
  /** The next bytes of its output, which end with the output. */
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

export type ExecutionsCase = readonly [name: string, run: (stage: ExecutionsStage) => Promise<void>];

/** Each case gets a harness and a running sandbox of its own. Nothing is started for cases that do not apply. */
export function executionCases(
  createHarness: () => Promise<SandboxExecutionsHarness>, cases: readonly ExecutionsCase[],
  apply: (harness: SandboxExecutionsHarness) => boolean = () => true,
): ContractCase[] {
  return cases.map(([name, run]) => ({
    name,
    async run() {
      const harness = await createHarness();
      const seed = randomInt(2 ** 31);
      await runAndClose(async () => {
        if (!apply(harness)) return;
        const runtime = await harness.open();
        const launched = harness.launch();
        const observed = await runtime.start(launched, () => {}, never);
        assert.equal(observed.state, 'running', JSON.stringify(observed.reason));
        try {
          await run(createStage(harness, runtime, launched, seed));
        } catch (error) {
          if (error instanceof Error) error.message = `with the seed ${seed}: ${error.message}`;
          throw error;
        }
      }, harness.close);
    },
  }));
}

function createStage(harness: SandboxExecutionsHarness, runtime: SandboxRuntime, launched: SandboxLaunch, seed: number): ExecutionsStage {
  let state = seed;
  return {
    ...harness, runtime, launched, sandboxId: launched.id,
    async start(command, more = {}, by = runtime) {
      const executionId = `exec-${randomBytes(6).toString('hex')}`;
      const request = { executionId, command: harness.commands[command], stdin: false, tty: null, ...more };
      const begun = await by.executions.start(launched.id, request, never);
      return seen(by.executions, launched.id, request.executionId, begun);
    },
    async openCommand(command, more = {}) {
      const executionId = `exec-${randomBytes(6).toString('hex')}`;
      const start = { executionId, command: harness.commands[command], ...more };
      return { id: start.executionId, ...opened(await runtime.executions.open(launched.id, start, never)) };
    },
    random(limit) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7f_ff_ff_ff;
      return Math.floor((state / 2 ** 31) * limit);
    },
  };
}

function seen(executions: SandboxExecutions, sandboxId: string, id: string, begun: ExecutionState): Execution {
  const output = (after: number, stream: OutputStream): Promise<ReadableStream<Uint8Array>> =>
    executions.output(sandboxId, id, { stream, after, follow: true }, never);
  return {
    id, begun,
    state: () => executions.state(sandboxId, id),
    ended: () => executions.ended(sandboxId, id, never),
    rest: async (after = 0, stream = 'stdout') => (await bytesOf(await output(after, stream))).toString('latin1'),
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
      await executions.write(sandboxId, id, new Blob([Buffer.from(content)]).stream(), close, never);
    },
    signal: (name) => executions.signal(sandboxId, id, name),
    resize: (cols, rows) => executions.resize(sandboxId, id, { cols, rows }),
    remove: () => executions.remove(sandboxId, id),
    by: ({ executions: others }) => seen(others, sandboxId, id, begun),
  };
}
