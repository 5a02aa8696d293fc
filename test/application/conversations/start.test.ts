import type { GitProvider } from '../../../src/ports/git-provider.ts';
import { describe, expect, test } from 'vitest';
import { explained, type Reason } from '../../../src/domain/reason.ts';
import { createMemoryCheckouts, createMemoryGitProvider, type MemoryWorkTrees } from '../../doubles/memory/index.ts';
import type { StartConversationRequest } from '../../../src/application/conversations/conversations.ts';
import { Failure, type FailureCode } from '../../../src/domain/failure.ts';
import { AgentRefusal, type OpenAgentSession } from '../../../src/ports/agent-protocol.ts';
import { failureOf, gate } from './support.ts';
import { calm, createOne, plain, said, shop, stepsIn, told, until, type WorldOptions } from './world.ts';

const repository = { ...plain, selectedRepository: 'acme/shop' };

/** Checkouts with this repository. Null: without it. */
function memoryCheckouts(trees: MemoryWorkTrees | null) {
  const memory = createMemoryCheckouts();
  if (trees !== null) memory.put('acme/shop', trees);
  return memory;
}

/** The same, but the check of the branch succeeds, as if the repository changed after it. */
function checkouts(trees: MemoryWorkTrees | null): WorldOptions {
  return { checkouts: { ...memoryCheckouts(trees), checkBranch: async () => {} } };
}

/** Starts a conversation and returns when its start is over. */
async function started(options: WorldOptions, request: StartConversationRequest = repository) {
  const world = createOne(options);
  const { conversation: { id } } = await world.conversations.start('me', request);
  const record = await until(() => world.store.conversations.find(id), (found) => found?.startStatus === 'READY' || found?.startStatus === 'ERROR');
  if (record === null) throw new Error('no record');
  return { ...world, id, record, log: await world.log(id) };
}

describe('the start of a conversation', () => {
  test.each([
    ['nothing', null, plain, ['WORKING', 'WAITING_FOR_SANDBOX', 'READY'], null],
    ['an agent', {}, plain, ['WORKING', 'WAITING_FOR_SANDBOX', 'STARTING_AGENT', 'READY'], 'idle'],
    ['a repository', null, repository, ['WORKING', 'WAITING_FOR_SANDBOX', 'PREPARING_REPOSITORY', 'LISTING_MICROAGENTS', 'READY'], null],
    ['both', {}, repository, ['WORKING', 'WAITING_FOR_SANDBOX', 'PREPARING_REPOSITORY', 'LISTING_MICROAGENTS', 'STARTING_AGENT', 'READY'], 'idle'],
  ] as const)('with %s goes through the steps that apply, each with an event', async (_, agent, request, steps, executionStatus) => {
    const { record, log } = await started({ agent }, request);
    expect(record).toMatchObject({ startStatus: 'READY', statusReason: null, executionStatus });
    expect(stepsIn(log)).toEqual(steps);
  });

  test('checks out the branch into the working directory and gives its microagents to the agent', async () => {
    const w = await started({}, { ...repository, selectedRepository: 'acme/shop', selectedBranch: 'next', initialMessage: said('hello') });
    expect(w.checkedOut).toEqual([`acme/shop next ${(await w.provider.remote('acme/shop')).url}`]);
    expect(w.host.puts).toEqual([{ instanceId: w.record.sandboxId, directory: '/workspace', archive: 'tar of acme/shop' }]);
    expect(w.record.microagents?.map(({ path }) => path)).toEqual(['.skep/microagents/deploy/aws.md', '.skep/microagents/style.md']);
    expect(w.host.executed).toMatchObject([{ request: { command: ['agent', 'acp'], env: { LEVEL: '3' }, workingDir: '/workspace' } }]);
    await until(() => w.handed.length === 1);
    expect(w.handed[0]).toMatch(/\.skep\/microagents\/deploy\/aws\.md.*\.skep\/microagents\/style\.md.*\|hello$/s);
    await w.conversations.send('me', w.id, said('again'));
    await until(() => w.handed.length === 2);
    expect(w.handed[1]).toBe('again');
    expect(told(await w.store.events.read({ ownerId: 'me', conversationId: w.id }, 0, 1000), 'message').map(({ text }) => text)).not.toContain(w.handed[0]);
  });

  test('in an existing sandbox uses a separate folder for the repository', async () => {
    const w = await started({});
    const { conversation } = await w.conversations.start('me', { ...repository, sandboxId: w.record.sandboxId });
    await until(() => w.store.conversations.find(conversation.id), (found) => found?.startStatus === 'READY');
    expect(w.host.puts.map(({ directory }) => directory)).toEqual(['/workspace', `/workspace/${conversation.id}`]);
    expect(w.host.executed.at(-1)?.request.workingDir).toBe(`/workspace/${conversation.id}`);
  });

  test('reports the progress of a long step at intervals', async () => {
    const held = gate();
    const w = createOne({
      checkouts: {
        checkOut: async (_, progress) => {
          for (let n = 0; n < 1000; n += 1) progress({ code: 'fetching_repository', phase: 'receiving', percent: n });
          await held.opened;
          return { branch: 'main', commit: 'c', archive: new Blob(['x']).stream() };
        },
      },
    });
    const { conversation: { id } } = await w.conversations.start('me', repository);
    const reason = async () => (await w.store.conversations.find(id))?.statusReason ?? null;
    await until(reason, isFirst);
    w.clock.advance(1000);
    expect(await until(reason, (found) => !isFirst(found))).toMatchObject({ percent: 999 });
    held.open();
    await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'READY');
    expect(await reason()).toBeNull();
    expect((await w.store.conversations.find(id))?.version).toBeLessThan(12);
    await w.close();
    expect(w.clock.pending).toBe(0);
  });
});

const isFirst = (found: Reason | null): boolean => found?.code === 'fetching_repository' && found.percent === 0;
const failure = (code: FailureCode) => ({ code: 'failure', failure: code });
const notStarted = (cause: Reason) => ({ code: 'agent_start_failed', cause });
const tooNew: Reason = { code: 'agent_version_unsupported', offered: 9, supported: 1 };

/** A provider's `remote` that fails from the second call on. */
function secondTime(failure: Failure): GitProvider['remote'] {
  let calls = 0;
  return async () => {
    if (++calls > 1) throw failure;
    return { url: 'https://git.example.org/acme/shop.git', authorization: null };
  };
}

describe('a branch that cannot be checked out', () => {
  const main = { defaultBranch: 'main', branches: { main: {} } };

  test.each<[string, MemoryWorkTrees | null, string]>([
    ['the branch does not exist', main, 'branch_not_found'],
    ['the repository is empty', { defaultBranch: null, branches: {} }, 'repository_empty'],
    ['the repository is gone', null, 'repository_not_found'],
    ['the credential may not read the repository', { ...main, refuses: 'repository' }, 'repository_forbidden'],
  ])('fails the request before anything is created if %s', async (_, trees, code) => {
    const w = createOne({ checkouts: memoryCheckouts(trees) });
    const asked = { ...repository, selectedBranch: 'next' };
    expect(await failureOf(w.conversations.start('me', asked))).toMatchObject({ code });
    expect((await w.conversations.search('me', {}, 'CREATED_AT', { after: null, limit: 9 })).items).toEqual([]);
    expect(await w.store.sandboxes.scan(null, 9)).toEqual([]);
    await w.close();
  });
});

describe('a failed start step', () => {
  const refused = new Failure('provider_failed', { provider: 'memory', reason: explained('it is down') });
  const main = { defaultBranch: 'main', branches: { main: {} } };
  const cases: readonly (readonly [string, WorldOptions, string, object])[] = [
    ['the checkout fails', { checkouts: { checkOut: () => Promise.reject(refused) } }, 'PREPARING_REPOSITORY', failure('provider_failed')],
    ['the branch does not exist any more', checkouts(main), 'PREPARING_REPOSITORY', failure('branch_not_found')],
    ['the repository is empty', checkouts({ defaultBranch: null, branches: {} }), 'PREPARING_REPOSITORY', failure('repository_empty')],
    ['the repository is gone', checkouts(null), 'PREPARING_REPOSITORY', failure('repository_not_found')],
    ['the credential may not read the repository', checkouts({ ...main, refuses: 'repository' }), 'PREPARING_REPOSITORY', failure('repository_forbidden')],
    ['the git host refuses the credential at the checkout', checkouts({ ...main, refuses: 'credential' }), 'PREPARING_REPOSITORY', failure('provider_unauthorized')],
    ['the git provider refuses the credential', { providers: [{ ...createMemoryGitProvider({ repositories: [shop] }), remote: secondTime(new Failure('provider_unauthorized', { provider: 'memory' })) }] }, 'PREPARING_REPOSITORY', failure('provider_unauthorized')],
    ['the checkout throws an unexpected error', { checkouts: { checkOut: () => Promise.reject(new TypeError('/home/skep/x.ts:1 boom')) } }, 'PREPARING_REPOSITORY', { code: 'internal_error' }],
    ['a secret of the agent is missing', { agent: { secrets: ['MODEL_KEY'] } }, 'STARTING_AGENT', notStarted({ code: 'agent_secrets_missing', names: ['MODEL_KEY'] })],
    ['the agent refuses to open a session', { beforeOpen: () => { throw new AgentRefusal(tooNew); } }, 'STARTING_AGENT', notStarted(tooNew)],
  ];

  test.each(cases)('ends the start with the step and the reason if %s', async (_, options, step, cause) => {
    const w = await started(options, { ...repository, selectedBranch: 'next', initialMessage: said('hello') });
    expect(w.record).toMatchObject({ startStatus: 'ERROR', statusReason: { code: 'step_failed', step, cause }, executionStatus: null });
    expect(stepsIn(w.log).at(-1)).toBe('ERROR');
    expect(w.log.at(-1)).toMatchObject({ kind: 'start_step', reason: w.record.statusReason });
    expect(w.host.running).toEqual([]);
    expect(await failureOf(w.conversations.send('me', w.id, said('hello')))).toMatchObject({ code: 'conversation_not_ready' });
    expect(await w.store.conversations.scanUnsettled(null, 10)).toEqual([]);
    await w.close();
    expect(w.clock.pending).toBe(0);
  });

  test.each([
    ['the checkout does not end', { checkouts: { checkOut: (_: unknown, __: unknown, signal: AbortSignal) => aborted(signal) } }, 30 * 60_000, 'PREPARING_REPOSITORY', { code: 'not_done_in_time', withinMs: 30 * 60_000 }],
    ['the agent does not answer', { beforeOpen: ({ onOtherOutput }: OpenAgentSession) => { onOtherOutput?.('Welcome.'); return new Promise<void>(() => {}); } }, 20_000, 'STARTING_AGENT', notStarted({ code: 'agent_not_ready_in_time', withinMs: 20_000, last: { code: 'agent_running', output: 'Welcome. warming up' } })],
  ] as const)('ends the start after its time limit if %s', async (_, options, ms, step, cause) => {
    const w = createOne(options);
    const { conversation: { id } } = await w.conversations.start('me', repository);
    await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'PREPARING_REPOSITORY' || found?.startStatus === 'STARTING_AGENT');
    await calm();
    w.host.executed.at(-1)?.complain('warming up');
    await calm();
    w.clock.advance(ms);
    const record = await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'ERROR');
    expect(record?.statusReason).toEqual({ code: 'step_failed', step, cause });
    expect(w.host.running).toEqual([]);
  });

  test('ends the start if the sandbox crashes during the step', async () => {
    const held = gate();
    const w = createOne({ beforeOpen: () => held.opened });
    const { conversation } = await w.conversations.start('me', repository);
    await until(() => w.host.running.length === 1);
    w.engine.crash(conversation.sandboxId, { code: 'process_exited', exitCode: 1, signal: null, program: null });
    w.sandboxReconciler.enqueue(conversation.sandboxId);
    const record = await until(() => w.store.conversations.find(conversation.id), (found) => found?.startStatus === 'ERROR');
    expect(record?.statusReason).toMatchObject({ code: 'step_failed', step: 'STARTING_AGENT' });
    held.open();
  });
});

test('a start waits without polling a runtime that does not answer, and continues with its sandbox', async () => {
  const w = createOne();
  const inspect = w.runtime.inspect.bind(w.runtime);
  let asked = 0;
  w.runtime.inspect = async (id) => {
    asked += 1;
    if (asked <= 50) throw new Failure('runtime_unavailable', { runtime: 'memory', reason: explained('it is being renewed'), retryAfterSeconds: 1 });
    return await inspect(id);
  };
  const { conversation: { id, sandboxId } } = await w.conversations.start('me', plain);
  await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'WAITING_FOR_SANDBOX');
  await calm();
  expect(asked).toBeLessThan(20);
  expect(await w.store.conversations.find(id)).toMatchObject({ startStatus: 'WAITING_FOR_SANDBOX' });
  asked = 50;
  w.sandboxReconciler.enqueue(sandboxId);
  await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'READY');
});

describe('deleting a conversation during its start', () => {
  test('stops the current step and leaves nothing behind', async () => {
    const w = createOne({ checkouts: { checkOut: (_, __, signal) => aborted(signal) } });
    const { conversation: { id, sandboxId } } = await w.conversations.start('me', repository);
    await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'PREPARING_REPOSITORY');
    await calm();
    await w.conversations.delete('me', id);
    expect(await failureOf(w.conversations.get('me', id))).toMatchObject({ code: 'conversation_not_found' });
    expect(w.engine.inspect(sandboxId).state).toBe('absent');
    expect((await w.store.conversations.find(id))?.removedAt).not.toBeNull();
    await w.close();
    expect(w.clock.pending).toBe(0);
  });
});

test('the credential of the git provider is in no record, event, log, file or command', async () => {
  const credential = 'Basic c2VjcmV0LXRva2Vu';
  const provider = createMemoryGitProvider({ repositories: [shop] });
  const seen: (string | null)[] = [];
  const w = await started({
    providers: [{ ...provider, remote: async (path) => ({ ...(await provider.remote(path)), authorization: credential }) }],
    checkouts: {
      checkOut: async ({ remote }) => {
        seen.push(remote.authorization);
        return { branch: 'main', commit: 'c', archive: new Blob(['files']).stream() };
      },
    },
  });
  expect(seen).toEqual([credential]);
  expect(JSON.stringify([w.record, w.log, w.logged, w.host.puts, w.host.executed.map(({ request }) => request)])).not.toContain('c2VjcmV0');
});

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

test('a start repeats the agent step if its sandbox is stopped during the step', async () => {
  let starts = 0;
  const w = createOne({ beforeOpen: () => ((starts += 1) === 1 ? new Promise<void>(() => {}) : Promise.resolve()) });
  const { conversation: { id, sandboxId } } = await w.conversations.start('me', plain);
  await until(() => starts === 1);
  await w.sandboxes.pause('me', sandboxId, 'stop');
  await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'READY');
  expect(starts).toBe(2);
});
