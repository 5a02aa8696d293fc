import { expect, test } from 'vitest';
import { maxContextBytes, maxMicroagents } from '../../../src/domain/applicable-microagents.ts';
import { Failure } from '../../../src/domain/failure.ts';
import { explained } from '../../../src/domain/reason.ts';
import type { GitProvider } from '../../../src/ports/git-provider.ts';
import { createMemoryGitProvider, type MemoryGitProvider } from '../../doubles/memory/index.ts';
import { contextText } from '../../../src/application/conversations/turns/microagent-context.ts';
import { gate, withLateTurns } from './support.ts';
import { calm, createWorld, plain, said, until, type World, type WorldOptions } from './world.ts';

const folder = '.skep/microagents';
const called = (triggers: string, content: string): string => `---\ntriggers: [${triggers}]\n---\n${content}`;

const texts = { 'style.md': 'Be brief.', 'aws.md': called('deploy, aws', 'Use make.'), 'tea.md': called('tea', 'Boil water.') };

/** A provider of a repository with these microagents. */
function providerOf(files: Readonly<Record<string, string>> = texts): MemoryGitProvider {
  const dated = Object.entries(files).map(([name, content]) => ({ path: `${folder}/${name}`, createdAt: 1, content }));
  return createMemoryGitProvider({ repositories: [{ path: 'acme/shop', defaultBranch: 'main', files: dated }] });
}

/** A conversation that is READY, over a git host that a test changes. */
async function ready(provider: GitProvider, options: WorldOptions = {}) {
  const world = createWorld({ ...options, providers: [provider] });
  const skep = world.boot();
  const { conversation: { id } } = await skep.conversations.start('me', { ...plain, selectedRepository: 'acme/shop' });
  await until(() => world.store.conversations.find(id), (found) => found?.startStatus === 'READY');
  return { ...world, ...skep, id, say: (text: string) => saying(world, skep, id, text) };
}

/** Sends a message, and returns what the agent got once its turn is over. */
async function saying(world: World, { conversations }: ReturnType<World['boot']>, id: string, text: string): Promise<string | undefined> {
  const before = world.handed.length;
  await conversations.send('me', id, said(text));
  await until(() => world.store.conversations.find(id), (found) => found?.turn === null && found.queue.length === 0);
  return world.handed.length > before ? world.handed.at(-1) : undefined;
}

const toldOfMicroagents = async (world: Pick<World, 'log'>, id: string) =>
  (await world.log(id)).flatMap((event) => (event.kind === 'microagents' ? [{ ...event.data, reason: event.reason }] : []));

const at = (name: string): string => `${folder}/${name}`;

test('each microagent is sent once, with the first message or the first one with its trigger', async () => {
  const w = await ready(providerOf());
  expect(await w.say('hello')).toMatch(/^<REPOSITORY_INSTRUCTIONS>\n[^<]*style\.md[^<]*Be brief\.\n<\/REPOSITORY_INSTRUCTIONS>\|hello$/);
  expect(await w.say('Deploy it')).toMatch(/^<EXTRA_INFO>\n[^<]*"deploy"[^<]*aws\.md[^<]*Use make\.\n<\/EXTRA_INFO>\|Deploy it$/);
  expect(await w.say('deploy it again, to AWS')).toBe('deploy it again, to AWS');
  expect(await toldOfMicroagents(w, w.id)).toEqual([
    { given: [{ path: at('style.md'), trigger: null }], leftOut: [], leftOutCount: 0, reason: null },
    { given: [{ path: at('aws.md'), trigger: 'deploy' }], leftOut: [], leftOutCount: 0, reason: null },
  ]);
  const log = await w.log(w.id);
  expect(log.flatMap(({ kind, data }) => (kind === 'message' && data.role === 'user' ? data.text : []))).toEqual(['hello', 'Deploy it', 'deploy it again, to AWS']);
  expect(log[log.findIndex(({ kind }) => kind === 'microagents') + 1]?.kind).toBe('turn_started');
});

test('the next process sends no microagent again, but an agent with a new session gets them again', async () => {
  const w = await ready(providerOf());
  await w.say('hello');
  w.mortal.die();
  const next = w.boot();
  await next.sweeper.sweep();
  expect(await saying(w, next, w.id, 'tea, please')).toMatch(/^<EXTRA_INFO>[^<]*Boil water\.[^<]*<\/EXTRA_INFO>\|tea, please$/);
  await next.close();

  const forgetful = await ready(providerOf(), { remembers: false });
  await forgetful.say('hello');
  forgetful.host.executed.at(-1)?.end(0);
  expect(await forgetful.say('hello again')).toMatch(/^<REPOSITORY_INSTRUCTIONS>.*\|hello again$/s);
});

test('microagents that are too many, too large or invalid are left out, and an event lists them', async () => {
  const many = Object.fromEntries(Array.from({ length: maxMicroagents }, (_, index) => [`many-${index}.md`, called('never', '')]));
  const w = await ready(providerOf({
    'a.md': 'x'.repeat(maxContextBytes - 10), 'b.md': 'y'.repeat(20), 'c.md': '---\n{', 'd.md': 'z'.repeat(2 ** 20 + 1),
    'e.md': called('w'.repeat(2000), ''), ...many,
  }));
  const [listed] = await toldOfMicroagents(w, w.id);
  expect(listed).toMatchObject({ given: [], leftOutCount: 8, reason: null });
  expect(listed?.leftOut.slice(0, 4)).toEqual([
    { path: at('c.md'), why: 'front_matter' }, { path: at('d.md'), why: 'too_large' }, { path: at('e.md'), why: 'too_large' },
    { path: at('many-5.md'), why: 'too_many' },
  ]);
  const handed = await w.say('hello');
  expect(handed).toContain(`- ${at('b.md')}\n`);
  expect(handed).not.toContain('yyy');
  expect((await toldOfMicroagents(w, w.id)).at(-1)).toMatchObject({ given: [{ path: at('a.md') }], leftOut: [{ path: at('b.md'), why: 'too_large' }] });
  expect(await w.say('hello again')).toBe('hello again');
  await w.say('never');
  // Three of the first ones are invalid, and two are settled.
  expect((await toldOfMicroagents(w, w.id)).at(-1)?.given).toHaveLength(maxMicroagents - 5);
});

const down = new Failure('provider_failed', { provider: 'memory', reason: explained('it is down') });

test('a failed listing of microagents does not fail the start, and an event has the reason', async () => {
  const w = await ready({ ...providerOf(), listFiles: () => Promise.reject(down) });
  expect(await toldOfMicroagents(w, w.id)).toMatchObject([
    { given: [], leftOut: [], reason: { code: 'microagents_unavailable', cause: { failure: 'provider_failed' } } },
  ]);
  expect(await w.say('hello')).toBe('hello');
});

test('a start continues if the git host does not list microagents in time', async () => {
  const provider = providerOf();
  const asked = gate();
  const listFiles: GitProvider['listFiles'] = (_, __, signal) => (asked.open(), aborted(signal));
  const w = createWorld({ providers: [{ ...provider, listFiles }] });
  const skep = w.boot();
  const { conversation: { id } } = await skep.conversations.start('me', { ...plain, selectedRepository: 'acme/shop' });
  await asked.opened;
  w.clock.advance(120_000);
  await until(() => w.store.conversations.find(id), (found) => found?.startStatus === 'READY');
  expect(await toldOfMicroagents(w, id)).toMatchObject([{ reason: { cause: { code: 'not_done_in_time' } } }]);
  await skep.close();
});

test('a microagent that cannot be read is left out, and the message is sent anyway', async () => {
  const memory = providerOf();
  let isDown = false;
  const readFile: GitProvider['readFile'] = (...args) => (isDown ? Promise.reject(down) : memory.readFile(...args));
  const w = await ready({ ...memory, readFile });
  w.mortal.die();
  // A process keeps what it has read in memory, so another process must read again.
  const next = w.boot();
  await next.sweeper.sweep();
  isDown = true;
  expect(await saying(w, next, w.id, 'deploy it')).toMatch(/^<EXTRA_INFO>[^<]*- \S*style\.md\n- \S*aws\.md\n<\/EXTRA_INFO>\|deploy it$/);
  expect(await toldOfMicroagents(w, w.id)).toMatchObject([
    { given: [], leftOut: [{ path: at('style.md'), why: 'not_readable' }, { path: at('aws.md'), why: 'not_readable' }], leftOutCount: 2 },
  ]);
  await next.close();
});

test('a message that the agent did not get is sent again with its microagents', async () => {
  const late = gate();
  let isLate = true;
  const w = createWorld({
    providers: [providerOf()],
    store: withLateTurns(() => (isLate ? late.opened : null)),
  });
  const first = w.boot();
  const request = { ...plain, selectedRepository: 'acme/shop', initialMessage: said('hello') };
  const { conversation: { id } } = await first.conversations.start('me', request);
  await until(() => w.store.conversations.find(id), (found) => found?.turn?.message !== undefined);
  const closed = first.close();
  await calm();
  isLate = false;
  late.open();
  await closed;
  expect(w.handed).toEqual([]);
  expect((await w.log(id)).findLast(({ kind }) => kind === 'turn_ended')?.reason).toEqual({ code: 'message_requeued' });
  const next = w.boot();
  await next.sweeper.sweep();
  await until(() => w.handed.length === 1);
  expect(w.handed[0]).toMatch(/^<REPOSITORY_INSTRUCTIONS>.*\|hello$/s);
  await next.close();
});

test('the context names the file and the reason of each text, and the files the agent must read', () => {
  const read = { blobId: 'b', triggers: [], isSettled: false };
  const given = [{ microagent: { path: 'style.md', ...read }, trigger: null, content: '\nBe brief.\n' }, { microagent: { path: 'aws.md', ...read }, trigger: 'deploy', content: 'Use make.' }];
  expect(`\n${contextText(given, [{ path: 'big.md', why: 'too_large' }])}\n`).toBe(`
<REPOSITORY_INSTRUCTIONS>
The file style.md of the repository, which always applies.

Be brief.
</REPOSITORY_INSTRUCTIONS>
<EXTRA_INFO>
The message mentions "deploy", so the file aws.md of the repository may be relevant.

Use make.
</EXTRA_INFO>
<EXTRA_INFO>
These files of the repository apply too. Read them before you begin.
- big.md
</EXTRA_INFO>
`);
});

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}
