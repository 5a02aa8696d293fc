import { expect, test } from 'vitest';
import { Failure } from '../../../src/domain/failure.ts';
import { defaultSetupTimeoutMs } from '../../../src/application/conversations/run-setup-script.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import type { MemoryCommand } from '../../doubles/memory/index.ts';
import { createOne, createWorld, plain, said, stepsIn, told, until, type World, type WorldOptions } from './world.ts';

const repository = { ...plain, selectedRepository: 'acme/shop', initialMessage: said('hello') };
const brings = { '.skep/setup.sh': 'npm ci' };

/** A script that ends when the test says so, and a list of its runs. */
function script() {
  const { promise: exits, resolve: exit } = Promise.withResolvers<number>();
  const runs: string[] = [];
  const command: MemoryCommand = async ({ request, workingDir, env, stdout }) => {
    runs.push(`${request.command.at(-1)} in ${workingDir} with ${Object.keys(env).join()}`);
    const writer = stdout.getWriter();
    await writer.write(new TextEncoder().encode('added 7 packages\n'));
    return await exits;
  };
  return { runs, exit, command };
}

const statusOf = (world: Pick<World, 'store'>, id: string) => until(
  () => world.store.conversations.find(id), (found) => found?.startStatus === 'READY' || found?.startStatus === 'ERROR',
);

const setupOf = async (world: Pick<World, 'log'>, id: string) => (await world.log(id)).flatMap(({ kind, data, reason }) => (kind === 'setup_script' ? [{ ...data, reason }] : []));

/** A conversation whose setup script runs. */
async function settingUp(options: WorldOptions = {}) {
  const { runs, exit, command } = script();
  const w = createOne({ brings, command, ...options });
  const { conversation: { id, sandboxId } } = await w.conversations.start('me', repository);
  await until(async () => (await setupOf(w, id)).length === 1);
  const [execution] = (await w.executions.list('me', sandboxId, { after: null, limit: 10 })).items;
  return { ...w, id, sandboxId, runs, exit, executionId: execution?.id ?? '' };
}

test('the setup script runs after the checkout and before the agent, as an execution with events', async () => {
  const w = await settingUp();
  expect(w.runs).toEqual(['./.skep/setup.sh in /workspace with SESSION_API_KEY']);
  expect(w.host.executed).toEqual([]);
  expect(await w.store.conversations.find(w.id)).toMatchObject({
    startStatus: 'RUNNING_SETUP_SCRIPT', statusReason: { code: 'running_setup_script', executionId: w.executionId },
  });
  w.exit(0);
  expect(await statusOf(w, w.id)).toMatchObject({ startStatus: 'READY', statusReason: null });
  expect(stepsIn(await w.log(w.id))).toEqual([
    'WORKING', 'WAITING_FOR_SANDBOX', 'PREPARING_REPOSITORY', 'RUNNING_SETUP_SCRIPT', 'LISTING_MICROAGENTS', 'STARTING_AGENT', 'READY',
  ]);
  const { executionId } = w;
  expect(await setupOf(w, w.id)).toEqual([{ executionId, status: 'running', reason: null }, { executionId, status: 'succeeded', reason: null }]);
  const { bytes } = await w.executions.output('me', w.sandboxId, executionId, { stream: 'stdout', after: 0, follow: false }, neverAborts);
  expect(await new Response(bytes).text()).toBe('added 7 packages\n');
  expect(w.runs).toHaveLength(1);
});

test('a setup script that fails does not fail the start, and its event has the exit code', async () => {
  const w = await settingUp();
  w.exit(3);
  expect(await statusOf(w, w.id)).toMatchObject({ startStatus: 'READY', statusReason: null });
  expect((await setupOf(w, w.id)).at(-1)).toEqual({
    executionId: w.executionId, status: 'failed', reason: { code: 'setup_script_failed', exitCode: 3, cause: null },
  });
  await until(() => w.handed.length === 1);
});

const timedOut = { code: 'execution_timed_out', afterMs: defaultSetupTimeoutMs };

test('a setup script that does not end is killed after its time limit', async () => {
  const w = await settingUp();
  w.clock.advance(defaultSetupTimeoutMs);
  expect(await statusOf(w, w.id)).toMatchObject({ startStatus: 'READY' });
  expect((await setupOf(w, w.id)).at(-1)).toMatchObject({ status: 'failed', reason: { code: 'setup_script_failed', exitCode: 137, cause: timedOut } });
});

test('a start does not wait longer than the time limit for a setup script in a frozen sandbox', async () => {
  const w = await settingUp();
  await w.sandboxes.pause('me', w.sandboxId, 'freeze');
  w.clock.advance(defaultSetupTimeoutMs + 60_000);
  expect(await statusOf(w, w.id)).toMatchObject({ startStatus: 'READY' });
  expect((await setupOf(w, w.id)).at(-1)).toMatchObject({ status: 'running', reason: { code: 'setup_script_unfinished', withinMs: defaultSetupTimeoutMs } });
});

test('a setup script is lost if its sandbox is stopped, and is not run again after a resume', async () => {
  const w = await settingUp();
  await w.sandboxes.pause('me', w.sandboxId, 'stop');
  expect(await statusOf(w, w.id)).toMatchObject({ startStatus: 'READY' });
  expect((await setupOf(w, w.id)).at(-1)).toMatchObject({ status: 'failed', reason: { cause: { code: 'execution_sandbox_ended' } } });
  expect(w.runs).toHaveLength(1);
});

test('a setup script that cannot be run has an event with the reason', async () => {
  const w = createOne({ brings, limits: { executionsPerSandbox: 0 } });
  const { conversation: { id } } = await w.conversations.start('me', repository);
  expect(await statusOf(w, id)).toMatchObject({ startStatus: 'READY' });
  expect(await setupOf(w, id)).toMatchObject([
    { executionId: null, status: 'failed', reason: { code: 'setup_script_failed', exitCode: null, cause: { failure: 'execution_limit_reached' } } },
  ]);
});

test('a setup script whose start the runtime does not confirm may still run, and its event says so', async () => {
  const w = createOne({ brings });
  const failure = { runtime: 'memory', limitMs: 30_000 };
  Object.assign(w.runtime.executions, { start: async () => await Promise.reject(new Failure('runtime_timeout', failure)) });
  const { conversation: { id } } = await w.conversations.start('me', repository);
  expect(await statusOf(w, id)).toMatchObject({ startStatus: 'READY' });
  expect(await setupOf(w, id)).toMatchObject([
    { executionId: null, status: 'running', reason: { code: 'setup_script_unconfirmed', cause: { failure: 'runtime_timeout', context: failure } } },
  ]);
});

test('the next process waits for the running setup script and starts no second one', async () => {
  const { runs, exit, command } = script();
  const w = createWorld({ brings, command });
  const first = w.boot();
  const { conversation: { id } } = await first.conversations.start('me', repository);
  await until(async () => (await setupOf(w, id)).length === 1);
  first.mortal.die();
  const second = w.boot();
  await second.sweeper.sweep();
  exit(0);
  expect(await statusOf(w, id)).toMatchObject({ startStatus: 'READY' });
  expect(runs).toHaveLength(1);
  expect(told(await w.log(id), 'setup_script').map(({ status }) => status)).toEqual(['running', 'succeeded']);
  await second.close();
});

test('a conversation that is deleted during its setup script leaves nothing behind', async () => {
  const w = await settingUp();
  await w.conversations.delete('me', w.id);
  expect(w.engine.inspect(w.sandboxId).state).toBe('absent');
  await w.close();
  expect(w.clock.pending).toBe(0);
});
