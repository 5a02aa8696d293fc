import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test, vi } from 'vitest';
import { DurableExecutions } from '../../../src/adapters/sandbox-runtime/durable-executions.ts';
import type { ExecutionHost, HostExecution } from '../../../src/adapters/sandbox-runtime/execution-host.ts';
import { Failure, isFailureOf } from '../../../src/domain/failure.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { assertFailure } from '../../contracts/contract.ts';

/** A script that a sandbox runs: what it says, and its exit code, or that it goes on. */
interface Script {
  readonly says: string | ReadableStream<Uint8Array>;
  readonly code: number | null | 'goes on';
}

/** A host whose sandbox answers as the test says. */
function createHost(answer: (command: readonly string[]) => Script, more: Partial<ExecutionHost> = {}) {
  const asked: (readonly string[])[] = [];
  const killed: (readonly string[])[] = [];
  const execute = (command: readonly string[]): HostExecution => {
    asked.push(command);
    const { says, code } = answer(command);
    return {
      stdin: new WritableStream(),
      stdout: typeof says === 'string' ? streamOf(says, code !== 'goes on') : says,
      stderr: streamOf('', true),
      exited: code === 'goes on' ? new Promise(() => {}) : Promise.resolve(code),
      kill: async () => void killed.push(command),
      outlive: () => {},
    };
  };
  const host: ExecutionHost = {
    observe: async () => ({ state: 'running', runId: 'run-1' }),
    folder: () => '/kept',
    mark: () => 'MARK=mark.',
    launch: async (_id, _start, supervise) =>
      execute(supervise({ folder: '/kept', runId: 'run-1', workingDir: '/', announce: false, fallbackMark: '' })),
    run: async (_id, command) => execute(command),
    async *keptFiles() {},
    remove: async () => {},
    ...more,
  };
  return { executions: new DurableExecutions(host), asked, killed };
}

function streamOf(text: string, ends: boolean): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      if (text !== '') controller.enqueue(Buffer.from(text));
      if (ends) controller.close();
    },
  });
}

const endless = (): ReadableStream<Uint8Array> =>
  new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(16_384).fill(120)) });
const hanging = (): Script => ({ says: '', code: 'goes on' });
const request = { executionId: 'exec-1', command: ['true'], stdin: false, tty: null };

describe('An execution in a sandbox that does not answer', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const calls: readonly (readonly [string, (executions: DurableExecutions) => Promise<unknown>])[] = [
    ['state', (executions) => executions.state('sb', 'exec-1')],
    ['signal', (executions) => executions.signal('sb', 'exec-1', 'SIGTERM')],
    ['resize', (executions) => executions.resize('sb', 'exec-1', { cols: 80, rows: 24 })],
    ['start', (executions) => executions.start('sb', request, neverAborts)],
  ];
  for (const [name, call] of calls) {
    test(`${name} fails with runtime_timeout after 30 seconds, and kills its script`, async () => {
      const { executions, asked, killed } = createHost(hanging);
      const failed = assertFailure(call(executions), 'runtime_timeout');
      await vi.advanceTimersByTimeAsync(30_000);
      await failed;
      assert.equal(asked.length, 1);
      assert.deepEqual(killed, asked);
    });
  }

  test('a wait for the end rejects if its signal fires', async () => {
    const { executions, asked, killed } = createHost(hanging);
    const left = new AbortController();
    const waiting = assert.rejects(executions.ended('sb', 'exec-1', left.signal), /left/);
    await vi.advanceTimersByTimeAsync(60_000);
    assert.deepEqual(killed, []);
    left.abort(new Error('left'));
    await waiting;
    assert.deepEqual(killed, asked);
  });

  test("an execution's state is polled only while someone waits for its end", async () => {
    // The exit code is that of SIGKILL, which may have ended what watches over the command.
    const { executions, killed } = createHost((command) =>
      command.includes('skep-supervisor') ? { says: 'durable\n', code: 137 } : { says: '', code: 'goes on' });
    await executions.start('sb', request, neverAborts);
    const left = new AbortController();
    const waiting = assert.rejects(executions.ended('sb', 'exec-1', left.signal), /left/);
    await vi.advanceTimersByTimeAsync(5_000);
    left.abort(new Error('left'));
    await waiting;
    assert.equal(killed.length, 1);
  });
});

describe('An execution in a sandbox with endless output', () => {
  for (const name of ['state', 'start'] as const) {
    test(`${name} fails with runtime_unavailable, and kills its script`, async () => {
      const { executions, asked, killed } = createHost(() => ({ says: endless(), code: 'goes on' }));
      const call = name === 'state' ? executions.state('sb', 'exec-1') : executions.start('sb', request, neverAborts);
      await assertFailure(call, 'runtime_unavailable');
      assert.deepEqual(killed, asked);
    });
  }
});

describe('A wait for the end of an execution', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('polls less and less often if the sandbox answers at once', async () => {
    const { executions, asked } = createHost(() => ({ says: 'running - 0 0 0 0\n', code: 0 }));
    const left = new AbortController();
    const waiting = assert.rejects(executions.ended('sb', 'exec-1', left.signal), /left/);
    await vi.advanceTimersByTimeAsync(60_000);
    assert.ok(asked.length > 5 && asked.length < 25, String(asked.length));
    left.abort(new Error('left'));
    await waiting;
  });

  test('reads the files of a frozen sandbox once, and looks less and less often whether it is resumed', async () => {
    let reads = 0;
    let looks = 0;
    const { executions } = createHost(hanging, {
      observe: async () => {
        looks += 1;
        return { state: 'frozen', runId: 'run-1' };
      },
      run: () => Promise.reject(new Failure('sandbox_not_running', { id: 'sb', status: 'frozen' })),
      async *keptFiles() {
        reads += 1;
        yield { name: 'begun', size: 13, content: streamOf('17 42 run-1\n', true) };
      },
    });
    const left = new AbortController();
    const waiting = assert.rejects(executions.ended('sb', 'exec-1', left.signal), /left/);
    await vi.advanceTimersByTimeAsync(60_000);
    assert.equal(reads, 1);
    assert.ok(looks > 12 && looks < 20, String(looks));
    left.abort(new Error('left'));
    await waiting;
  });
});

test('A terminal of the host is not resized in a frozen sandbox', async () => {
  let state: 'running' | 'frozen' = 'running';
  const { executions } = createHost(() => ({ says: 'no-terminal\n', code: 0 }), {
    observe: async () => ({ state, runId: 'run-1' }),
    launchTerminal: async () => ({
      stdin: new WritableStream(), stdout: streamOf('', false), stderr: streamOf('', true), exited: new Promise(() => {}),
      kill: async () => {}, outlive: () => {}, resize: async () => {},
    }),
  });
  const tty = { cols: 80, rows: 24 };
  await executions.start('sb', { ...request, tty }, neverAborts);
  await executions.resize('sb', 'exec-1', tty);
  state = 'frozen';
  await assertFailure(executions.resize('sb', 'exec-1', tty), 'sandbox_not_running');
});

test('A start whose shell has no room for a process fails, and removes nothing: the id may be that of a running command', async () => {
  const removed: string[] = [];
  const { executions } = createHost(() => ({ says: '', code: 2 }), { remove: async (_, id) => void removed.push(id) });
  await assert.rejects(executions.start('sb', request, neverAborts), (error) =>
    isFailureOf(error, 'runtime_unavailable') && error.context.reason.code === 'process_limit_reached');
  assert.deepEqual(removed, []);
});

describe('An execution in a sandbox without a shell', () => {
  for (const code of [126, 127]) {
    test(`signal fails with runtime_unavailable if its script ends with ${code}`, async () => {
      const { executions } = createHost(() => ({ says: '', code }));
      await assertFailure(executions.signal('sb', 'exec-1', 'SIGKILL'), 'runtime_unavailable');
    });
  }
});

/** Writes in a sandbox whose script that writes ends with this code, and whose script `state` says this. Returns the failure. */
async function failureOfWrite(code: number | null, state: string): Promise<unknown> {
  let isStopped = false;
  const { executions } = createHost((command) => {
    if (!command.includes('skep-input')) return { says: `${state} 0 0 0 0\n`, code: 0 };
    isStopped = state === 'stopped';
    return { says: '', code };
  }, { observe: async () => ({ state: isStopped ? 'stopped' : 'running', runId: 'run-1' }) });
  return executions.write('sb', 'exec-1', streamOf('text', true), false, neverAborts).catch((error: unknown) => error);
}

describe('Input for an execution of another process', () => {
  test('is refused as closed if the script says so, or was killed with the command', async () => {
    for (const failure of [await failureOfWrite(5, 'running -'), await failureOfWrite(137, 'exited 137'), await failureOfWrite(null, 'exited 137')]) {
      assert.ok(isFailureOf(failure, 'input_closed'), String(failure));
    }
  });

  test.each([137, null])('fails with sandbox_not_running if the script ends with %s because the sandbox was stopped', async (code) => {
    const failure = await failureOfWrite(code, 'stopped');
    assert.ok(isFailureOf(failure, 'sandbox_not_running'), String(failure));
  });

  test.each([[2, 'process_limit_reached'], [127, 'execution_end_unknown'], [137, 'execution_end_unknown'], [null, 'execution_end_unknown']])(
    'fails with runtime_unavailable if the script ends with %s, and the command runs', async (code, reason) => {
      const failure = await failureOfWrite(code, 'running -');
      assert.ok(isFailureOf(failure, 'runtime_unavailable') && failure.context.reason.code === reason, String(failure));
    },
  );
});

/** Reads in a sandbox whose script that reads ends at once with this code. Returns the result, and how often the script was started. */
async function readWhereScriptEndsWith(code: number) {
  const { executions, asked } = createHost((command) =>
    command.includes('skep-read') ? { says: '', code } : { says: 'running - 0 0 0 0\n', code: 0 });
  const left = new AbortController();
  const stream = await executions.output('sb', 'exec-1', { stream: 'stdout', after: 0, follow: true }, left.signal);
  const result = new Response(stream).text().catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(60_000);
  left.abort(new Error('left'));
  return { result: await result, scripts: asked.filter((command) => command.includes('skep-read')).length };
}

describe('A reader of an output', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test.each([1, 2, 126, 127])('fails with runtime_unavailable if its script ends with %i', async (code) => {
    const { result, scripts } = await readWhereScriptEndsWith(code);
    assert.ok(isFailureOf(result, 'runtime_unavailable'));
    assert.equal(scripts, 1);
  });

  test('restarts its script less and less often if the sandbox kills it each time', async () => {
    const { result, scripts } = await readWhereScriptEndsWith(137);
    assert.match(String(result), /left/);
    assert.ok(scripts > 5 && scripts < 25, String(scripts));
  });
});

describe('A cached execution', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('is read from the sandbox again one minute after its end, if it is durable', async () => {
    const { executions, asked } = createHost((command) =>
      command.includes('skep-supervisor') ? { says: 'durable\nout', code: 0 } : { says: 'exited 0 0 3 0 0\n', code: 0 });
    await executions.start('sb', request, neverAborts);
    assert.equal((await executions.ended('sb', 'exec-1', neverAborts)).exitCode, 0);
    assert.equal(asked.length, 1);
    await vi.advanceTimersByTimeAsync(60_000);
    assert.deepEqual((await executions.state('sb', 'exec-1')).stdout, { oldest: 0, end: 3 });
    assert.equal(asked.length, 2);
  });

  test('shares an output limit with all others, and the longest output is dropped first', async () => {
    const outputs = new Map([['short', 'kept'], ...Array.from({ length: 33 }, (_, n) => [`exec-${n}`, 'x'.repeat(4 << 20)] as const)]);
    const { executions } = createHost((command) => ({ says: `attached mkfifo\n${outputs.get(command.find((word) => outputs.has(word)) ?? '')}`, code: 0 }));
    for (const executionId of outputs.keys()) {
      await executions.start('sb', { ...request, executionId, command: [executionId] }, neverAborts);
      await executions.ended('sb', executionId, neverAborts);
    }
    const read = async (id: string): Promise<number> =>
      (await new Response(await executions.output('sb', id, { stream: 'stdout', after: 0, follow: true }, neverAborts)).text()).length;
    await assert.rejects(read('exec-0'), (error) => isFailureOf(error, 'output_dropped') && error.context.oldest === 4 << 20);
    assert.deepEqual([await read('short'), await read('exec-10'), await read('exec-32')], [4, 4 << 20, 4 << 20]);
  });

  test('is forgotten with its sandbox, if it is not durable', async () => {
    const { executions } = createHost((command) =>
      command.includes('skep-supervisor') ? { says: 'attached mkfifo\n', code: 0 } : { says: '', code: 4 });
    await executions.start('sb', request, neverAborts);
    await executions.ended('sb', 'exec-1', neverAborts);
    await vi.advanceTimersByTimeAsync(60_000);
    assert.equal((await executions.state('sb', 'exec-1')).durable, false);
    executions.forget('sb');
    await assertFailure(executions.state('sb', 'exec-1'), 'execution_not_found');
  });
});
