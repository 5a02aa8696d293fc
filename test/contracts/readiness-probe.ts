import assert from 'node:assert/strict';
import type { ExposedUrl } from '../../src/domain/sandbox.ts';
import type { ReadinessRule } from '../../src/domain/sandbox-spec.ts';
import type { ReadinessProbe } from '../../src/ports/readiness-probe.ts';
import type { ContractCase } from './contract.ts';

/** What a place answers: an HTTP status, `silent` where a connection is taken and nothing said, null where nobody listens. */
export type PlaceAnswer = number | 'silent' | null;

export interface ReadinessProbeHarness {
  readonly probe: ReadinessProbe;
  /** A place where nobody listens yet. */
  readonly url: string;
  /** Lets the place answer so from now on. */
  readonly answer: (answer: PlaceAnswer) => Promise<void>;
  /** Answers when the place was asked once more, or at once where nobody is ever asked. */
  readonly asked: () => Promise<void>;
  readonly close: () => Promise<void>;
}

type Probe = ReadinessRule['probe'];
type HarnessCase = readonly [name: string, run: (harness: ReadinessProbeHarness) => Promise<void>];

const http: Probe = { kind: 'http', port: 8000, path: '/health' };
const tcp: Probe = { kind: 'tcp', port: 8000 };

/** A probe that is under way, and whether it is over. */
interface Waiting {
  readonly ready: Promise<void>;
  readonly isOver: () => boolean;
}

function ask({ probe, url }: ReadinessProbeHarness, rule: Probe, signal = new AbortController().signal): Waiting {
  const urls: ExposedUrl[] = [
    { name: 'OTHER', url: 'http://127.0.0.1:1', port: 1 },
    { name: 'WEB', url, port: 8000 },
  ];
  let over = false;
  const ready = probe.untilReady({ probe: rule, withinMs: 1 }, urls, signal).finally(() => {
    over = true;
  });
  // It is awaited later, if at all.
  ready.catch(() => {});
  return { ready, isOver: () => over };
}

/** The answer does not make it ready, and the next one does. */
function waitsThrough(rule: Probe, before: PlaceAnswer, after: PlaceAnswer): HarnessCase {
  return [
    `${rule.kind}: waits while the place answers ${before ?? 'nothing'}, until it answers ${after}`,
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
    `${rule.kind}: rejects with the signal's reason while the place answers ${answer ?? 'nothing'}`,
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
      `http: is ready when the place answers ${status}`,
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
    'tcp: is ready when the place takes a connection, whatever it says',
    async (harness) => {
      await harness.answer('silent');
      await ask(harness, tcp).ready;
    },
  ],
  abortsWhile(http, null),
  abortsWhile(http, 503),
  abortsWhile(http, 'silent'),
  abortsWhile(tcp, null),
  [
    'rejects with the reason of a signal that has fired, and asks nobody',
    async (harness) => {
      await harness.answer(200);
      const reason = new Error('never mind');
      for (const rule of [http, tcp, { kind: 'none' } as const]) {
        await assert.rejects(ask(harness, rule, AbortSignal.abort(reason)).ready, (error) => error === reason);
      }
    },
  ],
  [
    'waits for the signal where the rule names a port that is not exposed',
    async (harness) => {
      await harness.answer(200);
      const controller = new AbortController();
      const { ready } = ask(harness, { kind: 'tcp', port: 9 }, controller.signal);
      await ask(harness, tcp).ready;
      controller.abort(new Error('too late'));
      await assert.rejects(ready, /too late/);
    },
  ],
];

/** What every readiness probe must do. */
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
