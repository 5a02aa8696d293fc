import assert from 'node:assert/strict';
import { isFailureOf } from '../../src/domain/failure.ts';
import type { ObservedSandbox } from '../../src/domain/sandbox.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { IgnorableSpecPart, SandboxLaunch, SandboxRuntime } from '../../src/ports/sandbox-runtime.ts';
import { type ContractCase, runAndClose, waitLimitMs } from './contract.ts';
import type { SandboxCommands } from './sandbox-runtime-commands.ts';

/** The permitted differences between sandbox runtimes. They decide which cases apply. */
export interface SandboxRuntimeTraits {
  /** The runtime's capability `freeze`. */
  readonly freeze: boolean;
  /** The runtime's `ignores`. */
  readonly ignores: readonly IgnorableSpecPart[];
  /** The observed state of a sandbox whose command does not exist. */
  readonly missingCommand: 'absent' | 'created' | 'stopped';
  /** Does the reason of an ended sandbox contain the exit code of its command? */
  readonly exitCode: 'known' | 'unknown';
  /** Do the exposed URLs answer if a program listens? */
  readonly ports: 'served' | 'simulated';
  /** Is it reported if something outside ended a sandbox, as `endFromOutside` of the harness does? */
  readonly endFromOutside: 'reported' | 'unknown';
  /** Are listeners notified when a sandbox's processes are killed from outside? */
  readonly outsideKill: 'notified' | 'unnoticed';
  /** The same for sandboxes that an earlier runtime object started. */
  readonly outsideKillAfterReopening: 'notified' | 'unnoticed';
  /** When does the kill of a command in a frozen sandbox take effect? */
  readonly killWhileFrozen: 'at once' | 'on resume';
  /** Are logs kept byte for byte, or are bytes that are not UTF-8 replaced? */
  readonly logs: 'bytes' | 'UTF-8';
}

/**
 * The program of a sandbox. Each program appends a line to the file `runs` in its working directory when it begins.
 *
 * - `counts`: writes a growing number, from 1, to the file `count` until it is killed.
 * - `stubborn`: like `counts`, but it ignores the stop signal.
 * - `exits`: writes the line `gone` to its standard error, and ends at once with code 3.
 * - `ends itself`: sends SIGTERM to itself.
 * - `says goodbye`: runs until the stop signal. Then it writes the line `bye` to the file `goodbye`, and ends with 0.
 * - `says`: writes all 256 bytes and a line end to its standard output, then the lines `line 1`, `line 2` and so on. Odd lines go
 *   to its standard error. After each line, writes its number to the file `count`.
 * - `tells`: writes the values of the variables `GREETING` and `SESSION_KEY` to the file `told`, a line each, and keeps running.
 * - `serves`: answers every HTTP request on the sandbox's only port with 200 and its count of requests, from 1.
 * - `missing`: its command does not exist.
 */
export type SandboxProgram =
  | 'counts' | 'stubborn' | 'exits' | 'ends itself' | 'says goodbye' | 'says' | 'tells' | 'serves' | 'missing';

export interface SandboxRuntimeHarness {
  /** Returns a new runtime object for the harness's engine. The harness closes it at the end. */
  readonly open: () => Promise<SandboxRuntime>;
  /**
   * Returns a launch of the program with a new id, the variable `GREETING` with the value `hello there`, the session key in
   * `SESSION_KEY`, and the port 8080 with the name `WEB`.
   */
  readonly launch: (program: SandboxProgram) => SandboxLaunch;
  /** The commands to run in sandboxes. See `shellCommands`. */
  readonly commands: SandboxCommands;
  /** Returns the content of a file in the sandbox's working directory. Follows links. Null if there is no file. */
  readonly readFile: (id: string, name: string) => Promise<string | null>;
  /** Kills all processes of the sandbox, without the runtime. */
  readonly crash: (id: string) => Promise<void>;
  /**
   * Ends the sandbox in a way that is no crash: as a person who stops it on the engine, or as a restart of the host. Only called if the
   * runtime reports it.
   */
  readonly endFromOutside: (id: string) => Promise<void>;
  /** Returns the sandbox's remaining objects on the engine: processes, files and reservations. */
  readonly leftovers: (id: string) => Promise<readonly string[]>;
  /**
   * Returns the launch of a running sandbox with the program `counts` for cases that can share one, one after another. Its working directory
   * has only the program's files. Called at most once for each case. After a case has failed, the next one needs another sandbox. Not set if
   * each case starts its own.
   */
  readonly shared?: () => Promise<SandboxLaunch>;
  /** Removes everything. */
  readonly close: () => Promise<void>;
}

/** The tools of a case: a harness, a runtime, and short forms of frequent calls. */
export interface SandboxRuntimeStage extends SandboxRuntimeHarness {
  readonly traits: SandboxRuntimeTraits;
  readonly runtime: SandboxRuntime;
  /** The state of a running sandbox after a freeze. */
  readonly frozen: 'frozen' | 'running';
  readonly start: (launch: SandboxLaunch) => Promise<ObservedSandbox>;
  readonly resume: (launch: SandboxLaunch) => Promise<ObservedSandbox>;
  /** Starts the program, and waits until it has begun. */
  readonly begun: (program: Exclude<SandboxProgram, 'exits' | 'ends itself' | 'missing'>) => Promise<SandboxLaunch>;
  /** Returns how often the sandbox's program has begun. */
  readonly runs: (id: string) => Promise<number>;
  readonly count: (id: string) => Promise<number>;
  /** Waits until the program has written a higher number. */
  readonly countsOn: (id: string) => Promise<void>;
}

type Condition = 'if it freezes' | 'if it cannot freeze' | 'if it limits resources' | 'if it isolates' | 'if it reports an end from outside';

const conditions: Readonly<Record<Condition, (traits: SandboxRuntimeTraits) => boolean>> = {
  'if it freezes': ({ freeze }) => freeze,
  'if it cannot freeze': ({ freeze }) => !freeze,
  'if it limits resources': ({ ignores }) => !ignores.includes('resources'),
  'if it isolates': ({ ignores }) => !ignores.includes('isolation'),
  'if it reports an end from outside': ({ endFromOutside }) => endFromOutside === 'reported',
};

/**
 * Cases with `can share` do not need their sandbox for themselves. They leave it running. Cases with a condition apply only to some
 * runtimes.
 */
export type StageCase = readonly [
  name: string, run: (stage: SandboxRuntimeStage) => Promise<void>, ...tags: readonly ('can share' | Condition)[],
];

/** The states of a sandbox to run one case in, with the condition of each. */
export const statesToTry: readonly (readonly [state: 'running' | 'frozen' | 'stopped', ...conditions: readonly Condition[]])[] =
  [['running'], ['frozen', 'if it freezes'], ['stopped']];

/**
 * Turns the cases that apply into contract cases. Each case gets its own harness, by default also those that can share a sandbox.
 */
export function stageCases(
  createHarness: () => Promise<SandboxRuntimeHarness>, traits: SandboxRuntimeTraits, cases: readonly StageCase[],
  createSharing = createHarness,
): ContractCase[] {
  const applying = cases.filter(([, , ...tags]) => tags.every((tag) => tag === 'can share' || conditions[tag](traits)));
  return applying.map(([name, run, ...tags]) => ({
    name,
    async run() {
      const harness = await (tags.includes('can share') ? createSharing() : createHarness());
      await runAndClose(async () => run(createStage(harness, traits, await harness.open())), harness.close);
    },
  }));
}

function createStage(harness: SandboxRuntimeHarness, traits: SandboxRuntimeTraits, runtime: SandboxRuntime): SandboxRuntimeStage {
  let shared: Promise<SandboxLaunch> | undefined;
  const start = (launch: SandboxLaunch): Promise<ObservedSandbox> => runtime.start(launch, () => {}, neverAborts);
  const count = async (id: string): Promise<number> => Number((await harness.readFile(id, 'count')) ?? '0');
  const runs = async (id: string): Promise<number> => ((await harness.readFile(id, 'runs')) ?? '').split('\n').length - 1;
  return {
    ...harness,
    traits,
    runtime,
    frozen: traits.freeze ? 'frozen' : 'running',
    start,
    resume: (launch) => runtime.resume(launch, neverAborts),
    async begun(program) {
      if (program === 'counts' && harness.shared !== undefined) return await (shared ??= harness.shared());
      const launch = harness.launch(program);
      const observed = await start(launch);
      assert.equal(observed.state, 'running', JSON.stringify(observed.reason));
      await waitFor(`the program of ${launch.id} runs`, () => runs(launch.id), (times) => times > 0);
      return launch;
    },
    runs,
    count,
    async countsOn(id) {
      const before = await count(id);
      await waitFor(`the program of ${id} counts beyond ${before}`, () => count(id), (now) => now > before);
    },
  };
}

/** The maximum number of refusals in a row. */
const maxRefusals = 5;

/** Freezes the sandbox. Retries after a temporary refusal, as the port requires. */
export async function freeze(runtime: SandboxRuntime, id: string): Promise<ObservedSandbox> {
  for (let refusals = 0; ; refusals += 1) {
    try {
      return await runtime.freeze(id);
    } catch (error) {
      const isRefused = isFailureOf(error, 'runtime_unavailable') && error.context.reason.code === 'freeze_refused';
      if (!isRefused || refusals === maxRefusals) throw error;
    }
  }
}

const quietMs = 3_000;

/** Checks the condition until it holds. Prints a warning after a few seconds, and fails after a minute. */
export async function eventually(what: string, condition: () => Promise<boolean>): Promise<void> {
  await waitFor(what, condition, (holds) => holds, () => '');
}

/** Waits until the sandbox is stopped, and returns what the runtime reports. */
export async function waitUntilStopped(runtime: SandboxRuntime, id: string): Promise<ObservedSandbox> {
  return await waitFor(`the sandbox ${id} is stopped`, () => runtime.inspect(id), ({ state }) => state === 'stopped');
}

const lastSeen = (seen: unknown): string => `; last seen: ${JSON.stringify(seen)}`;

/** Looks until the result is accepted, and returns it. A warning after a few seconds and the failure after a minute say what was seen. */
export async function waitFor<T>(what: string, look: () => Promise<T>, accepts: (seen: T) => boolean, textOf = lastSeen): Promise<T> {
  const begin = performance.now();
  let isQuiet = true;
  for (;;) {
    const seen = await look();
    if (accepts(seen)) return seen;
    const waitedMs = performance.now() - begin;
    if (waitedMs > waitLimitMs) assert.fail(`timed out: ${what}${textOf(seen)}`);
    if (isQuiet && waitedMs > quietMs) process.stderr.write(`still waiting: ${what}${textOf(seen)}\n`);
    isQuiet &&= waitedMs <= quietMs;
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}
