import { AssertionError } from 'node:assert';
import { describe, expect, test } from 'vitest';
import type { ObservedSandbox } from '../../src/domain/sandbox.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { SandboxExecutions } from '../../src/ports/sandbox-executions.ts';
import type { SandboxFiles } from '../../src/ports/sandbox-files.ts';
import type { Execution, SandboxLaunch, SandboxRuntime } from '../../src/ports/sandbox-runtime.ts';
import {
  createExecutionsHarness, createRuntimeHarness, executionsTraits, type RuntimeChange, runtimeTraits,
} from '../doubles/memory/contract-harness.ts';
import type { ContractCase } from '../contracts/contract.ts';
import { sandboxExecutionsContract } from '../contracts/sandbox-executions.ts';
import { sandboxRuntimeContract } from '../contracts/sandbox-runtime.ts';

/** Returns the object with replaced methods. */
const withMethods = <T extends object>(target: T, methods: Partial<T>): T => new Proxy(target, {
  get: (_, key) => Reflect.get(key in methods ? methods : target, key),
});

const change = (methods: (runtime: SandboxRuntime) => Partial<SandboxRuntime>): RuntimeChange =>
  (runtime) => withMethods(runtime, methods(runtime));

const changeExecutions = (methods: (executions: SandboxExecutions) => Partial<SandboxExecutions>): RuntimeChange =>
  change(({ executions }) => ({ executions: withMethods(executions, methods(executions)) }));

/** Returns an object whose method ignores its signal. */
function deafTo<T extends object>(target: T, method: keyof T & string): T {
  const call = Reflect.get(target, method) as (...args: unknown[]) => unknown;
  const deaf = (...args: unknown[]): unknown => call(...args.map((arg) => (arg instanceof AbortSignal ? neverAborts : arg)));
  return withMethods(target, { [method]: deaf } as Partial<T>);
}

/** Changes what the runtime reports about each sandbox. */
const changeObserved = (report: (observed: ObservedSandbox) => ObservedSandbox): RuntimeChange =>
  change((runtime) => ({
    start: async (...asked) => report(await runtime.start(...asked)),
    stop: async (id) => report(await runtime.stop(id)),
    freeze: async (id) => report(await runtime.freeze(id)),
    resume: async (...asked) => report(await runtime.resume(...asked)),
    inspect: async (id) => report(await runtime.inspect(id)),
    list: async () => (await runtime.list()).map(report),
  }));

const withoutSignal = ({ reason, ...observed }: ObservedSandbox): ObservedSandbox =>
  ({ ...observed, reason: reason?.code === 'process_exited' ? { ...reason, signal: null } : reason });

const withoutEnv = (launch: SandboxLaunch): SandboxLaunch => ({ ...launch, spec: { ...launch.spec, initialEnv: {} } });

/** Reads ahead, and drops what nobody has read a moment after the end of the command. */
function cutAtEnd(output: ReadableStream<Uint8Array>, { exited }: Execution): ReadableStream<Uint8Array> {
  const ahead = output.pipeThrough(new TransformStream(undefined, undefined, { highWaterMark: 600 })).getReader();
  let hasEnded = false;
  void exited.then(() => setTimeout(() => (hasEnded = true), 10));
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value } = await ahead.read();
      if (value === undefined || hasEnded) controller.close();
      else controller.enqueue(value);
    },
    cancel: () => ahead.cancel(),
  }, { highWaterMark: 0 });
}

type Mistake = readonly [mistake: string, contractCase: string, change: RuntimeChange];

const fileMethods: readonly (keyof SandboxFiles)[] = ['stat', 'read', 'write', 'makeDirectory', 'remove', 'move', 'list'];

const runtimeMistakes: readonly Mistake[] = [
  [
    'an initialEnv that is forgotten on resume',
    "passes the spec's environment",
    change((runtime) => ({ resume: (launch, signal) => runtime.resume(withoutEnv(launch), signal) })),
  ],
  ...(['provide', 'resume'] as const).map((method): Mistake =>
    [`a ${method} that ignores its signal`, 'rejects calls whose', (runtime) => deafTo(runtime, method)]),
  ...fileMethods.map((method): Mistake =>
    [`a files.${method} that ignores its signal`, 'rejects file calls', change(({ files }) => ({ files: deafTo(files, method) }))]),
  ['a signal that is missing in the reason', 'names the signal', changeObserved(withoutSignal)],
  ['an end that always seems to come from outside', 'reports a sandbox whose command exited', changeObserved((observed) => ({ ...observed, endedFromOutside: true }))],
  [
    'an end that never seems to come from outside',
    'reports that something outside ended',
    changeObserved((observed) => ({ ...observed, endedFromOutside: false })),
  ],
  [
    'a stop that kills without asking',
    'stop asks the program',
    (runtime, engine) => withMethods(runtime, {
      async stop(id) {
        engine.crash(id);
        return await runtime.inspect(id);
      },
    }),
  ],
  [
    'output that is lost if it is read after the end of its command',
    'keeps stdout and stderr separate',
    change((runtime) => ({
      async execute(...asked) {
        const execution = await runtime.execute(...asked);
        return { ...execution, stdout: cutAtEnd(execution.stdout, execution), stderr: cutAtEnd(execution.stderr, execution) };
      },
    })),
  ],
];

const executionMistakes: readonly Mistake[] = [
  [
    'a start that ignores its variables',
    "runs a command with the request's variables",
    changeExecutions((executions) => ({ start: (id, request, signal) => executions.start(id, { ...request, env: {} }, signal) })),
  ],
  [
    'a start that ignores its working directory',
    "runs a command with the request's variables",
    changeExecutions((executions) => ({
      async start(id, request, signal) {
        const { workingDir: _, ...others } = request;
        return await executions.start(id, others, signal);
      },
    })),
  ],
  [
    'a wait for the end that ignores its signal',
    'stops waiting for the end',
    change(({ executions }) => ({ executions: deafTo(executions, 'ended') })),
  ],
];

/** Returns the failure of the only case whose name begins with `name`. */
async function failureOfCase(contract: readonly ContractCase[], name: string): Promise<unknown> {
  const cases = contract.filter((each) => each.name.startsWith(name));
  expect(cases).toHaveLength(1);
  return await cases[0]?.run().then(() => null, (error: unknown) => error);
}

describe('The contract of sandbox runtimes catches', () => {
  test.each(runtimeMistakes)('%s', async (_, contractCase, mistaken) => {
    const contract = sandboxRuntimeContract(() => createRuntimeHarness(mistaken), runtimeTraits);
    expect(await failureOfCase(contract, contractCase)).toBeInstanceOf(AssertionError);
  });

  test.each(executionMistakes)('%s', async (_, contractCase, mistaken) => {
    const contract = sandboxExecutionsContract(() => createExecutionsHarness(mistaken), executionsTraits);
    expect(await failureOfCase(contract, contractCase)).toBeInstanceOf(AssertionError);
  });
});
