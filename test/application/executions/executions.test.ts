import { describe, expect, test } from 'vitest';
import { withRecordFailures } from '../../../src/application/sandboxes/sandbox-records.ts';
import { maxEndedExecutions } from '../../../src/domain/execution.ts';
import { Failure } from '../../../src/domain/failure.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { createMemoryRuntime } from '../../doubles/memory/index.ts';
import { someSandbox } from '../../contracts/records.ts';
import { until } from '../../support/until.ts';
import { codeOf } from '../code-of.ts';
import { request, started } from './world.ts';

const unavailable = new Failure('runtime_unavailable', { runtime: 'memory', reason: { code: 'unreachable' }, retryAfterSeconds: 1 });
const noRoom = new Failure('runtime_unavailable', { ...unavailable.context, reason: { code: 'process_limit_reached' } });
const claim = { ownerId: 'ann', key: 'k', fingerprint: 'f' };

test('a command runs, its output is read from an offset, and its exit code is kept', async () => {
  const { executions, sandboxId, ended, output } = await started();
  const execution = await executions.run('ann', sandboxId, request(['echo', 'hello'], { env: { GREETING: '!' } }));
  expect(execution).toMatchObject({ sandboxId, command: ['echo', 'hello'], begun: true, durable: true });
  expect(await output(execution.id)).toBe('hello!\n');
  expect(await output(execution.id, 4)).toBe('o!\n');
  expect(await ended(execution.id)).toMatchObject({ status: 'exited', exitCode: 0, stdoutBytes: 7, endedAt: expect.any(Number) });
  const failed = await executions.run('ann', sandboxId, request(['false']));
  expect(await ended(failed.id)).toMatchObject({ status: 'exited', exitCode: 1 });
  const listed = await executions.list('ann', sandboxId, { after: null, limit: 10 });
  expect(listed.items.map(({ id }) => id).toSorted()).toEqual([execution.id, failed.id].toSorted());
});

test('the output is reported as dropped if the sandbox has lost it, and the exit code stays', async () => {
  const { world, executions, sandboxId, ended, output } = await started();
  const { id } = await executions.run('ann', sandboxId, request(['echo', 'hello']));
  await ended(id);
  world.faults.calls.set('state', { error: new Failure('execution_not_found', { id }) });
  await expect(output(id)).rejects.toMatchObject({ code: 'output_dropped', context: { oldest: 6 } });
  expect([await output(id, 6), await ended(id)]).toMatchObject(['', { status: 'exited', exitCode: 0 }]);
});

test('input reaches the command, until it is closed', async () => {
  const { executions, sandboxId, ended, output } = await started();
  const { id } = await executions.run('ann', sandboxId, request(['cat'], { stdin: true }));
  const write = (words: string, close: boolean) => executions.write('ann', sandboxId, id, new Blob([words]).stream(), close, neverAborts);
  await write('one ', false);
  await write('two', true);
  expect(await output(id)).toBe('one two');
  await ended(id);
  expect(await codeOf(write('three', false))).toBe('input_closed');
  const deaf = await executions.run('ann', sandboxId, request(['sleep']));
  expect(await codeOf(executions.write('ann', sandboxId, deaf.id, new Blob(['x']).stream(), false, neverAborts))).toBe('input_closed');
});

test('an execution is not found by another owner, or in another sandbox', async () => {
  const { world, skep, executions, sandboxId } = await started();
  const { id } = await executions.run('ann', sandboxId, request(['sleep']));
  const size = { cols: 80, rows: 24 };
  const reading = { stream: 'stdout', after: 0, follow: false } as const;
  const calls = (scope: string | null, sandbox: string) => [
    executions.get(scope, sandbox, id), executions.output(scope, sandbox, id, reading, neverAborts), executions.resize(scope, sandbox, id, size),
    executions.write(scope, sandbox, id, new Blob(['x']).stream(), false, neverAborts), executions.signal(scope, sandbox, id, 'SIGKILL'),
    executions.delete(scope, sandbox, id),
  ];
  for (const call of calls('bob', sandboxId)) expect(await codeOf(call)).toBe('sandbox_not_found');
  expect(await codeOf(executions.run('bob', sandboxId, request(['echo'])))).toBe('sandbox_not_found');
  expect(await codeOf(executions.list('bob', sandboxId, { after: null, limit: 1 }))).toBe('sandbox_not_found');
  const other = await world.sandbox(skep);
  for (const call of calls('ann', other)) expect(await codeOf(call)).toBe('execution_not_found');
  expect(await executions.get(null, sandboxId, id)).toMatchObject({ status: 'running' });
});

describe('a repeated request', () => {
  test('returns the first execution', async () => {
    const { executions, sandboxId, skep } = await started();
    const first = await executions.run('ann', sandboxId, request(['sleep'], { claim }));
    expect((await executions.run('ann', sandboxId, request(['sleep'], { claim }))).id).toBe(first.id);
    expect(await codeOf(executions.run('ann', sandboxId, request(['sleep'], { claim: { ...claim, fingerprint: 'g' } })))).toBe('idempotency_conflict');
    await skep.sandboxes.pause('ann', sandboxId, 'freeze');
    expect((await executions.run('ann', sandboxId, request(['sleep'], { claim }))).id).toBe(first.id);
    expect(await codeOf(executions.run('ann', sandboxId, request(['sleep'])))).toBe('sandbox_not_running');
    await executions.delete('ann', sandboxId, first.id);
    expect(await codeOf(executions.run('ann', sandboxId, request(['sleep'], { claim })))).toBe('execution_not_found');
  });

  test.each([true, false])('runs the command once if the response of the runtime was lost (after it began: %s)', async (after) => {
    const { world, executions, sandboxId, ended, output } = await started();
    world.faults.calls.set('start', { error: unavailable, after });
    expect(await codeOf(executions.run('ann', sandboxId, request(['echo', 'x'], { claim })))).toBe('runtime_unavailable');
    world.faults.calls.clear();
    const { id } = await executions.run('ann', sandboxId, request(['echo', 'x'], { claim }));
    await ended(id);
    expect(await output(id)).toBe('x\n');
    expect((await executions.list('ann', sandboxId, { after: null, limit: 9 })).items).toHaveLength(1);
  });

  test('keeps its command and its record if the first has failed only then', async () => {
    const { world, executions, sandboxId } = await started();
    const run = () => executions.run('ann', sandboxId, request(['tick'], { claim }));
    const { promise: began, resolve } = Promise.withResolvers<string>();
    const undoInsert = world.store.executions.undoInsert.bind(world.store.executions);
    world.store.executions.undoInsert = async (id) => {
      world.faults.calls.clear();
      resolve((await run()).id);
      return await undoInsert(id);
    };
    world.faults.calls.set('start', { error: noRoom });
    expect(await codeOf(run())).toBe('runtime_unavailable');
    expect(await executions.get('ann', sandboxId, await began)).toMatchObject({ status: 'running', begun: true });
    expect((await run()).id).toBe(await began);
    expect(world.ticks).toHaveLength(1);
  });

  test('leaves no command if the first fails, and so undoes the insert, while it starts the command', async () => {
    const { world, executions, sandboxId } = await started();
    const replace = world.store.executions.replace.bind(world.store.executions);
    let id = '';
    world.store.executions.replace = async (record) => {
      ({ id } = record);
      await world.store.executions.undoInsert(id);
      return await replace(record);
    };
    expect(await codeOf(executions.run('ann', sandboxId, request(['tick'], { claim })))).toBe('execution_not_found');
    expect(await codeOf(createMemoryRuntime(world.engine).executions.state(sandboxId, id))).toBe('execution_not_found');
  });

  test('does not remove the command if the sandbox has no room to look for it', async () => {
    const { world, executions, sandboxId } = await started();
    const run = () => executions.run('ann', sandboxId, request(['tick'], { claim }));
    world.faults.calls.set('start', { error: unavailable, after: true });
    expect(await codeOf(run())).toBe('runtime_unavailable');
    world.faults.calls.set('start', { error: noRoom });
    expect(await codeOf(run())).toBe('runtime_unavailable');
    world.faults.calls.clear();
    const { id } = await run();
    expect(await executions.get('ann', sandboxId, id)).toMatchObject({ status: 'running', begun: true });
    expect(world.ticks).toHaveLength(1);
  });
});

test('an execution whose start failed is lost after a while if the request is not repeated', async () => {
  const { world, skep, executions, sandboxId } = await started();
  world.faults.calls.set('start', { error: unavailable });
  expect(await codeOf(executions.run('ann', sandboxId, request(['echo'])))).toBe('runtime_unavailable');
  await skep.sweeper.sweep();
  const find = async () => (await executions.list('ann', sandboxId, { after: null, limit: 9 })).items[0];
  expect(await find()).toMatchObject({ status: 'running', begun: false });
  world.clock.advance(120_000);
  await skep.sweeper.sweep();
  expect(await until(find, (one) => one?.status === 'lost', 60_000)).toMatchObject({ statusReason: { code: 'execution_not_started' } });
});

test('a command without a time limit runs on if the response to its start was lost', async () => {
  const { world, skep, executions, sandboxId } = await started();
  world.faults.calls.set('start', { error: unavailable, after: true });
  expect(await codeOf(executions.run('ann', sandboxId, request(['sleep'])))).toBe('runtime_unavailable');
  world.faults.calls.clear();
  const { items: [execution] } = await executions.list('ann', sandboxId, { after: null, limit: 9 });
  world.clock.advance(120_000);
  await skep.sweeper.sweep();
  const reconciled = await until(() => world.store.executions.find(execution!.id), (one) => one!.begun || one!.statusReason !== null, 60_000);
  expect(reconciled).toMatchObject({ status: 'running', begun: true, statusReason: null });
});

test.each([[false, 'lost'], [true, 'running']])('after an unexpected error of a start the runtime decides its status (it began: %s)', async (after, status) => {
  const { world, executions, sandboxId } = await started();
  world.faults.calls.set('start', { error: new Error('unexpected'), after });
  await expect(executions.run('ann', sandboxId, request(['sleep']))).rejects.toThrow('unexpected');
  const { items } = await executions.list('ann', sandboxId, { after: null, limit: 9 });
  expect(items).toMatchObject([{ status, begun: after, statusReason: after ? null : { code: 'execution_not_started' } }]);
});

test('an execution in a sandbox that does not run, or has no room for it, or where it did not begin, is refused and leaves no record', async () => {
  const { world, skep, executions, sandboxId } = await started();
  await skep.sandboxes.pause('ann', sandboxId, 'freeze');
  expect(await codeOf(executions.run('ann', sandboxId, request(['echo'])))).toBe('sandbox_not_running');
  await skep.sandboxes.resume('ann', sandboxId);
  // The record still says that it runs.
  world.engine.freeze(sandboxId);
  await expect(executions.run('ann', sandboxId, request(['echo'], { claim }))).rejects.toMatchObject({ code: 'sandbox_not_running', context: { id: sandboxId, status: 'PAUSED' } });
  for (const reason of [{ code: 'process_limit_reached' }, { code: 'command_not_begun', cause: unavailable.context.reason }] as const) {
    world.faults.calls.set('start', { error: new Failure('runtime_unavailable', { ...unavailable.context, reason }) });
    expect(await codeOf(executions.run('ann', sandboxId, request(['echo'], { claim })))).toBe('runtime_unavailable');
  }
  expect([(await executions.list('ann', sandboxId, { after: null, limit: 9 })).items, await world.store.executions.findClaim(claim)]).toEqual([[], null]);
});

test('an execution continues after a freeze and a server restart, and is lost after a stop', async () => {
  const { world, skep, executions, sandboxId } = await started();
  const { id } = await executions.run('ann', sandboxId, request(['tick']));
  await skep.sandboxes.pause('ann', sandboxId, 'freeze');
  await skep.sandboxes.resume('ann', sandboxId);
  await skep.shutdown();
  const next = await world.boot();
  await next.sweeper.sweep();
  await world.ticks[0]!();
  await until(() => next.executions.get('ann', sandboxId, id), ({ stdoutBytes }) => stdoutBytes === 5, 60_000);
  await next.sandboxes.pause('ann', sandboxId, 'stop');
  const lost = await until(() => next.executions.get('ann', sandboxId, id), ({ status }) => status !== 'running', 60_000);
  expect(lost).toMatchObject({ status: 'lost', exitCode: null });
  expect(await world.store.executions.find(id)).toMatchObject({ status: 'lost' });
});

describe('a delete', () => {
  test('removes the execution, and can be repeated', async () => {
    const { world, executions, sandboxId, get } = await started();
    const { id } = await executions.run('ann', sandboxId, request(['sleep']));
    await executions.delete('ann', sandboxId, id);
    await executions.delete('ann', sandboxId, id);
    expect(await codeOf(get(id))).toBe('execution_not_found');
    expect(await world.store.executions.find(id)).toMatchObject({ removedAt: expect.any(Number) });
    expect(await codeOf(executions.delete('ann', sandboxId, 'none'))).toBe('execution_not_found');
  });

  test('succeeds if the runtime does not answer, and is completed by a later sweep', async () => {
    const { world, skep, executions, sandboxId, get } = await started();
    const { id } = await executions.run('ann', sandboxId, request(['sleep']));
    world.faults.calls.set('remove', { error: unavailable });
    await executions.delete('ann', sandboxId, id);
    expect(await codeOf(get(id))).toBe('execution_not_found');
    expect(await world.store.executions.find(id)).toMatchObject({ removedAt: null });
    world.faults.calls.clear();
    await skep.sweeper.sweep();
    await until(() => world.store.executions.find(id), (record) => record?.removedAt !== null, 60_000);
  });

  test('of the sandbox ends its executions, and their records are removed later', async () => {
    const { world, skep, executions, sandboxId } = await started();
    const { id } = await executions.run('ann', sandboxId, request(['sleep']));
    await skep.sandboxes.delete('ann', sandboxId);
    await skep.sweeper.sweep();
    await until(() => world.store.executions.find(id), (record) => record?.status === 'lost', 60_000);
    world.clock.advance(86_400_001);
    await skep.sweeper.sweep();
    expect(await world.store.executions.find(id)).toBeNull();
  });
});

test('executions above the limit are refused until one has ended', async () => {
  const { executions, sandboxId, ended } = await started({ executionsPerSandbox: 2 });
  const [first] = [await executions.run('ann', sandboxId, request(['sleep'])), await executions.run('ann', sandboxId, request(['sleep']))];
  await expect(executions.run('ann', sandboxId, request(['echo']))).rejects.toMatchObject({
    code: 'execution_limit_reached', context: { limit: 'executions_per_sandbox', max: 2 },
  });
  await executions.signal('ann', sandboxId, first.id, 'SIGTERM');
  expect(await ended(first.id)).toMatchObject({ exitCode: 143 });
  await executions.signal('ann', sandboxId, first.id, 'SIGTERM');
  await executions.run('ann', sandboxId, request(['echo']));
});

test('the oldest ended executions are removed', async () => {
  const { world, executions, sandboxId, ended, get } = await started();
  const ids: string[] = [];
  for (let number = 0; number < maxEndedExecutions + 2; number += 1) {
    world.clock.advance(1);
    const { id } = await executions.run('ann', sandboxId, request(['echo']));
    await ended(id);
    ids.push(id);
  }
  expect(await codeOf(get(ids[0]!))).toBe('execution_not_found');
  expect(await get(ids[2]!)).toMatchObject({ status: 'exited' });
  await until(() => world.store.executions.find(ids[0]!), (record) => record?.removedAt !== null, 60_000);
});

test.each([['STARTING', 'STARTING'], ['RUNNING', 'MISSING']] as const)('a sandbox that the runtime does not have is, by its record %s: %s', async (record, status) => {
  const done = withRecordFailures(someSandbox('one', { status: record }), () => Promise.reject(new Failure('sandbox_not_found', { id: 'one' })));
  await expect(done).rejects.toMatchObject({ code: 'sandbox_not_running', context: { status } });
});
