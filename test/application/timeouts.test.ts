import { describe, expect, test } from 'vitest';
import { expiresAt } from '../../src/domain/idle-policy.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { calm, createRunning, createWorld } from './world.ts';

const ready = { probe: { kind: 'none' }, withinMs: 10_000 } as const;

/** A spec whose sandboxes live this long at most. */
const limited = (maxLifeMs: number | null) =>
  sandboxSpec({ id: 'plain', ready, rest: { freezeAfterMs: null, stopAfterMs: null, deleteAfterMs: null, maxLifeMs } });

describe('a pause that removes the timeout', () => {
  test('keeps a sandbox whose timeout is over before it is paused', async () => {
    const { sandboxes, engine, clock, id } = await createRunning();
    await sandboxes.setTimeout('me', id, 2000);
    engine.close('freeze');
    const pausing = sandboxes.pause('me', id, undefined, { removesTimeout: true });
    await calm();
    clock.advance(4000);
    await calm();
    engine.open('freeze');
    expect(await pausing).toMatchObject({ status: 'PAUSED' });
    clock.advance(60_000);
    await calm();
    expect(expiresAt(await sandboxes.get('me', id))).toBeNull();
  });

  test('removes it also if the sandbox is being paused, or is paused', async () => {
    const { sandboxes, engine, id } = await createRunning();
    await sandboxes.setTimeout('me', id, 60_000);
    engine.close('freeze');
    const pauses = [sandboxes.pause('me', id), calm().then(() => sandboxes.pause('me', id, undefined, { removesTimeout: true }))];
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSING', spec: { rest: { maxLifeMs: null } } });
    engine.open('freeze');
    await Promise.all(pauses);
    await sandboxes.setTimeout('me', id, 60_000);
    expect(await sandboxes.pause('me', id, undefined, { removesTimeout: true })).toMatchObject({ status: 'PAUSED', spec: { rest: { maxLifeMs: null } } });
  });

  test.each([
    ['the maximum of the spec, if that is later', 50_000, 50_000],
    ['its own end, if the spec allows less now', 5000, 20_000],
    ['no end if the spec has none now', null, null],
  ])('leaves %s', async (_, maxLifeMs, expected) => {
    const { boot } = createWorld({ specs: [limited(100_000)] });
    const first = boot();
    await first.sweeper.start();
    const { id, createdAt } = await first.sandboxes.start('me', { specId: null, parameters: { timeoutMs: 20_000 } });
    await calm();
    await first.shutdown();
    const { sweeper, sandboxes } = boot([limited(maxLifeMs)]);
    await sweeper.start();
    const paused = await sandboxes.pause('me', id, undefined, { removesTimeout: true });
    expect(expiresAt(paused)).toBe(expected === null ? null : createdAt + expected);
  });

  test('keeps the maximum life of a sandbox whose timeout pauses it, also if the spec has none now', async () => {
    const { boot } = createWorld({ specs: [limited(100_000)] });
    const first = boot();
    await first.sweeper.start();
    const parameters = { timeoutMs: 20_000, pauseAtTimeout: { kind: 'freeze' } } as const;
    const { id, createdAt } = await first.sandboxes.start('me', { specId: null, parameters });
    await calm();
    await first.shutdown();
    const { sweeper, sandboxes } = boot([limited(null)]);
    await sweeper.start();
    const paused = await sandboxes.pause('me', id, undefined, { removesTimeout: true });
    expect(expiresAt(paused)).toBe(createdAt + 100_000);
  });
});
