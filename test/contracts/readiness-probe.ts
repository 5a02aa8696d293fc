import assert from 'node:assert/strict';
import type { ProbeMiss } from '../../src/domain/readiness.ts';
import type { ExposedUrl } from '../../src/domain/sandbox.ts';
import type { ReadinessRule } from '../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { ReadinessProbe } from '../../src/ports/readiness-probe.ts';
import { type ContractCase, withTimeout } from './contract.ts';

/** The answer of a place: an HTTP status, `silent` if it accepts a connection and sends nothing, null if nobody listens. */
export type PlaceAnswer = number | 'silent' | null;

export interface ReadinessProbeHarness {
  readonly probe: ReadinessProbe;
  /** A place where nobody listens yet. */
  readonly url: string;
  /** Sets the answer of the place from now on. */
  readonly answer: (answer: PlaceAnswer) => Promise<void>;
  /** Resolves at the next request to the place, or at once if the probe never sends one. */
  readonly asked: () => Promise<void>;
  readonly close: () => Promise<void>;
}

type Probe = ReadinessRule['probe'];
type HarnessCase = readonly [name: string, run: (harness: ReadinessProbeHarness) => Promise<void>];

const http: Probe = { kind: 'http', port: 8000, path: '/health' };
const tcp: Probe = { kind: 'tcp', port: 8000 };

/** A running probe, and the misses that it has reported. */
interface Waiting {
  readonly ready: Promise<void>;
  readonly isOver: () => boolean;
  readonly told: readonly ProbeMiss[];
  /** Resolves when a miss of this kind is reported, or at once if it was the last one. */
  readonly tells: (kind: ProbeMiss['kind']) => Promise<ProbeMiss>;
}

function ask({ probe, url }: ReadinessProbeHarness, rule: Probe, signal = neverAborts): Waiting {
  const told: ProbeMiss[] = [];
  const listeners = new Set<(miss: ProbeMiss) => void>();
  const urls: ExposedUrl[] = [
    { name: 'OTHER', url: 'http://127.0.0.1:1', port: 1 },
    { name: 'WEB', url, port: 8000 },
  ];
  let over = false;
  const missed = (miss: ProbeMiss): void => {
    told.push(miss);
    for (const listen of listeners) listen(miss);
  };
  const ready = probe.untilReady({ probe: rule, withinMs: 1 }, urls, signal, missed).finally(() => {
    over = true;
  });
  // Prevents an unhandled rejection if nobody awaits it.
  ready.catch(() => {});
  const tells = async (kind: ProbeMiss['kind']): Promise<ProbeMiss> => {
    const last = told.at(-1);
    if (last?.kind === kind) return last;
    const { promise, resolve } = Promise.withResolvers<ProbeMiss>();
    listeners.add((miss) => void (miss.kind === kind && resolve(miss)));
    return await withTimeout(`the probe reports ${kind}`, promise);
  };
  return { ready, isOver: () => over, told, tells };
}

/** While the place gives this answer, the probe reports this miss, until the place is ready or the signal fires. */
function tellsOf(rule: Probe, answer: PlaceAnswer, met: Partial<ProbeMiss> & Pick<ProbeMiss, 'kind'>): HarnessCase {
  return [
    `${rule.kind}: reports the miss ${met.kind} while the port answers ${answer ?? 'nothing'}`,
    async (harness) => {
      await harness.answer(answer);
      const controller = new AbortController();
      const { ready, tells, told } = ask(harness, rule, controller.signal);
      const miss = await tells(met.kind);
      assert.deepEqual({ ...miss, ...met }, miss);
      controller.abort(new Error('enough'));
      await assert.rejects(ready, /enough/);
      const { length } = told;
      await harness.answer(200);
      await ask(harness, rule).ready;
      assert.equal(told.length, length);
    },
  ];
}

/** The first answer does not make the place ready, and the second one does. */
function waitsThrough(rule: Probe, before: PlaceAnswer, after: PlaceAnswer): HarnessCase {
  return [
    `${rule.kind}: is not ready while the port answers ${before ?? 'nothing'}, and is ready after it answers ${after}`,
    async (harness) => {
      await harness.answer(before);
      const { ready, isOver } = ask(harness, rule);
      for (let times = 0; times < 3; times += 1) await harness.asked();
      assert.equal(isOver(), false);
      await harness.answer(after);
      await ready;
    },
  ];
}

function abortsWhile(rule: Probe, answer: PlaceAnswer): HarnessCase {
  return [
    `${rule.kind}: rejects with the signal's reason while the port answers ${answer ?? 'nothing'}`,
    async (harness) => {
      await harness.answer(answer);
      const reason = new Error('too late');
      const controller = new AbortController();
      const { ready } = ask(harness, rule, controller.signal);
      await harness.asked();
      controller.abort(reason);
      await assert.rejects(ready, (error) => error === reason);
    },
  ];
}

const cases: readonly HarnessCase[] = [
  ['none: is ready at once', async (harness) => ask(harness, { kind: 'none' }).ready],
  ...[200, 204, 301, 399].map(
    (status): HarnessCase => [
      `http: is ready if the port answers ${status}`,
      async (harness) => {
        await harness.answer(status);
        await ask(harness, http).ready;
      },
    ],
  ),
  waitsThrough(http, null, 200),
  waitsThrough(http, 404, 200),
  waitsThrough(http, 503, 302),
  waitsThrough(http, 'silent', 200),
  waitsThrough(tcp, null, 500),
  [
    'tcp: is ready if the port accepts a connection, without any response',
    async (harness) => {
      await harness.answer('silent');
      await ask(harness, tcp).ready;
    },
  ],
  abortsWhile(http, null),
  abortsWhile(http, 503),
  abortsWhile(http, 'silent'),
  abortsWhile(tcp, null),
  tellsOf(http, null, { kind: 'refused' }),
  tellsOf(http, 404, { kind: 'answered', status: 404 }),
  tellsOf(http, 503, { kind: 'answered', status: 503 }),
  tellsOf(http, 'silent', { kind: 'silent' }),
  tellsOf(tcp, null, { kind: 'refused' }),
  [
    'reports the latest miss, and reports no success',
    async (harness) => {
      await harness.answer(503);
      const { ready, tells, told } = ask(harness, http);
      await tells('answered');
      await harness.answer('silent');
      const silent = await tells('silent');
      assert.ok(silent.kind === 'silent' && silent.withinMs > 0);
      await harness.answer(200);
      await ready;
      assert.equal(told.some((miss) => miss.kind === 'answered' && miss.status < 400), false);
    },
  ],
  [
    'rejects with the reason of a signal that has already fired',
    async (harness) => {
      await harness.answer(200);
      const reason = new Error('never mind');
      for (const rule of [http, tcp, { kind: 'none' } as const]) {
        await assert.rejects(ask(harness, rule, AbortSignal.abort(reason)).ready, (error) => error === reason);
      }
    },
  ],
  [
    'waits until the signal fires if the rule names a port that is not exposed',
    async (harness) => {
      await harness.answer(200);
      const controller = new AbortController();
      const { ready, tells } = ask(harness, { kind: 'tcp', port: 9 }, controller.signal);
      await tells('unexposed');
      await ask(harness, tcp).ready;
      controller.abort(new Error('too late'));
      await assert.rejects(ready, /too late/);
    },
  ],
];

/** The contract of every readiness probe. */
export function readinessProbeContract(createHarness: () => Promise<ReadinessProbeHarness>): ContractCase[] {
  return cases.map(([name, run]) => ({
    name,
    async run() {
      const harness = await createHarness();
      try {
        await run(harness);
      } finally {
        await harness.close();
      }
    },
  }));
}
