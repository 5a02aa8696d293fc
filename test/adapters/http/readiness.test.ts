import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createRouter } from '../../../src/adapters/http/index.ts';
import { createManualClock } from '../../doubles/memory/index.ts';
import { until } from '../../support/until.ts';
import { startWorld, type World } from './world.ts';

const fine = async () => ({ ok: true, detail: 'the file /home/somebody/skep.db answers' });
const store = { part: 'store', adapter: 'sqlite', check: fine };

describe('readiness', () => {
  test('is 503 if the store does not answer, with the cause only in the log', async () => {
    const world = await startWorld();
    const broken = await createWorldOf(world, [
      { ...store, check: async () => ({ ok: false, detail: 'the file /home/somebody/skep.db is gone' }) },
      { part: 'runtime', adapter: 'process', check: fine },
    ]);
    const answer = await broken('/ready');
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(await answer.json()).toEqual({
      status: 'not_ready',
      parts: [
        { part: 'store', adapter: 'sqlite', ok: false, detail: 'does not answer; the log says why' },
        { part: 'runtime', adapter: 'process', ok: true, detail: 'answers' },
      ],
    });
    expect(world.lines.filter(({ level }) => level === 'warn')).toMatchObject([{ part: 'store', detail: 'the file /home/somebody/skep.db is gone' }]);
    expect((await broken('/health')).status).toBe(200);
  });

  test('is 200 and degraded if a git host or the runtime does not answer', async () => {
    const world = await startWorld();
    let asked = 0;
    const ask = await createWorldOf(hastened(world), [
      store,
      { part: 'runtime', adapter: 'docker', check: () => (asked += 1, new Promise(() => undefined)) },
      { part: 'git', adapter: 'github', check: async () => ({ ok: false, detail: 'the rate limit is reached' }) },
      { part: 'git', adapter: 'gitlab', check: fine },
    ]);
    for (let time = 0; time < 3; time += 1) {
      const answer = await ask('/ready');
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({ status: 'degraded', parts: [{ ok: true }, { ok: false }, { ok: false }, { ok: true }] });
    }
    expect(asked).toBe(1);
  });

  test('is ready while a runtime answers slowly, and degraded when it takes too long, without delaying other reports', async () => {
    const world = await startWorld();
    let [answerMs, checks] = [150, 0];
    const clock = createManualClock(Date.now());
    const check = async () => (checks += 1, await sleep(answerMs), await fine());
    const ask = await createWorldOf({ ...world, skep: { ...world.skep, clock } }, [store, { part: 'runtime', adapter: 'docker', check }]);
    const status = async () => ((await (await ask('/ready')).json()) as { status: string }).status;
    expect(await status()).toBe('ready');
    answerMs = 100_000;
    clock.advance(10_000);
    const early = status();
    await until(() => checks, (count) => count === 2);
    clock.advance(500);
    expect(await early).toBe('ready');
    clock.advance(4500);
    expect(await status()).toBe('degraded');
    expect(world.lines.filter(({ level }) => level === 'warn')).toMatchObject([{ part: 'runtime', detail: 'no answer within 5 s' }]);
  });

  test('shows no earlier answer of a part that is older than 30 seconds', async () => {
    const world = await startWorld();
    let checks = 0;
    const clock = createManualClock(Date.now());
    const check = () => ((checks += 1) === 1 ? fine() : new Promise<never>(() => {}));
    const ask = await createWorldOf({ ...world, skep: { ...world.skep, clock } }, [store, { part: 'git', adapter: 'github', check }]);
    expect(await (await ask('/ready')).json()).toMatchObject({ status: 'ready' });
    clock.advance(30_000);
    const late = ask('/ready');
    await until(() => checks, (count) => count === 2);
    clock.advance(500);
    clock.advance(4500);
    expect(await (await late).json()).toMatchObject({ status: 'degraded' });
  });

  test.each([
    ['credential', 'refuses the credential'],
    ['rate_limit', 'limits the rate of requests'],
  ] as const)('says what a git host refuses (%s), and the log has the details', async (refusal, text) => {
    const world = await startWorld();
    const refused = { ok: false, refusal, detail: 'what to do' };
    const ask = await createWorldOf(world, [store, { part: 'git', adapter: 'github', check: async () => refused }]);
    const part = { part: 'git', adapter: 'github', ok: false, detail: `${text}; the log says why` };
    expect(await (await ask('/ready')).json()).toMatchObject({ status: 'degraded', parts: [{ ok: true }, part] });
    expect(world.lines.filter(({ level }) => level === 'warn')).toMatchObject([{ message: `a part ${text}`, detail: 'what to do' }]);
  });

  test.each([
    ['throws', async () => await Promise.reject(new Error('the engine is gone'))],
    ['does not end', () => new Promise<never>(() => {})],
  ] as const)('returns after a check that %s, and the log has both changes', async (_how, fail) => {
    const world = await startWorld();
    let checks = 0;
    const clock = createManualClock(Date.now());
    const ask = await createWorldOf({ ...world, skep: { ...world.skep, clock } }, [{ ...store, check: () => ((checks += 1) === 1 ? fail() : fine()) }]);
    const first = ask('/ready');
    await until(() => checks, (count) => count === 1);
    clock.advance(500);
    expect((await first).status).toBe(503);
    expect((await ask('/ready')).status).toBe(503);
    expect(checks).toBe(1);
    expect(world.lines.filter(({ level }) => level === 'warn')).toMatchObject([{ part: 'store', message: 'a part does not answer' }]);
    clock.advance(15_000);
    expect((await ask('/ready')).status).toBe(200);
    expect(world.lines.some(({ message }) => message === 'a part answers again')).toBe(true);
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('checks a part again when its time is over, also if the time of the machine is set back meanwhile', async () => {
    const world = await startWorld();
    let isOk = true;
    const clock = createManualClock(Date.now());
    const check = async () => ({ ok: isOk, detail: 'the file' });
    const ask = await createWorldOf({ ...world, skep: { ...world.skep, clock } }, [{ ...store, check }]);
    expect((await ask('/ready')).status).toBe(200);
    isOk = false;
    expect((await ask('/ready')).status).toBe(200);
    clock.jump(-3_600_000);
    clock.advance(1000);
    expect((await ask('/ready')).status).toBe(503);
  });

  test('ignores the result of a check that was abandoned', async () => {
    const world = await startWorld();
    const slow = Promise.withResolvers<{ ok: boolean; detail: string }>();
    let checks = 0;
    const clock = createManualClock(Date.now());
    const check = async () => ((checks += 1) === 1 ? await slow.promise : await fine());
    const ask = await createWorldOf({ ...world, skep: { ...world.skep, clock } }, [{ ...store, check }]);
    const first = ask('/ready');
    await until(() => checks, (count) => count === 1);
    clock.advance(500);
    expect((await first).status).toBe(503);
    clock.advance(9500);
    expect((await ask('/ready')).status).toBe(200);
    slow.resolve({ ok: false, detail: 'too late' });
    expect((await ask('/ready')).status).toBe(200);
    expect(checks).toBe(2);
  });

  test('is checked once for many requests at a time', async () => {
    const world = await startWorld();
    let checks = 0;
    const { promise: hold, resolve: release } = Promise.withResolvers<void>();
    const ask = await createWorldOf(world, [{ ...store, check: async () => (checks += 1, await hold, await fine()) }]);
    const answers = Promise.all(Array.from({ length: 20 }, () => ask('/ready')));
    await until(() => checks, (count) => count > 0);
    release();
    for (const { status } of await answers) expect(status).toBe(200);
    await ask('/ready');
    expect(checks).toBe(1);
  });
});

/** Returns the world with a clock whose timers run ten times as fast. */
function hastened(world: World): World {
  const { clock } = world.skep;
  return { ...world, skep: { ...world.skep, clock: { ...clock, now: () => Date.now(), after: (ms, callback) => clock.after(ms / 10, callback) } } };
}

/** Returns a client for a router over the same deployment with other parts. */
async function createWorldOf(world: World, parts: World['skep']['parts']): Promise<(path: string) => Promise<Response>> {
  const { default: express } = await import('express');
  const app = express().use(createRouter({ ...world.skep, parts }));
  const { promise: listening, resolve } = Promise.withResolvers<void>();
  const server = app.listen(0, '127.0.0.1', () => resolve());
  await listening;
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return (path) => fetch(`http://127.0.0.1:${port}${path}`, { headers: { Connection: 'close' } });
}
