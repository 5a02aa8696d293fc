import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { SandboxFiles } from '../../src/ports/sandbox-files.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { assertRejects, withTimeout } from './contract.ts';
import { filesOf, into, pieces } from './sandbox-files.ts';
import { type StageCase, statesToTry } from './sandbox-runtime-harness.ts';

const broken = statesToTry.map(([state, ...conditions]): StageCase => [
  `keeps only the old file if a write fails halfway while the sandbox is ${state}`,
  async (stage) => {
    const sandbox = await stage.begun('counts');
    const files = filesOf(stage, sandbox);
    await files.write('dir/file', 'old\n');
    await into(state, stage, sandbox);
    const error = new Error('the source broke');
    const fail = (): never => {
      throw error;
    };
    for (const count of [0, 1, 20]) {
      // Content longer than its declared size is as broken as content that ends too early.
      const size = 30 * 256 * 1024;
      await assertRejects(files.write('dir/file', pieces(count, fail), { size }), error);
      const controller = new AbortController();
      const content = ReadableStream.from(pieces(count, () => controller.abort(error)));
      const { id } = sandbox;
      const endless = new ReadableStream<Uint8Array>({
        async start(sink) {
          for await (const chunk of content) sink.enqueue(chunk);
        },
      });
      await assertRejects(stage.runtime.files.write(id, files.at('dir/file'), endless, { size }, controller.signal), error);
      assert.equal(await files.text('dir/file'), 'old\n', `after ${count} pieces`);
      assert.deepEqual(await files.names('dir'), ['file'], `after ${count} pieces`);
    }
  },
  ...conditions,
]);

/** Yields some pieces, and then never continues or ends. It can't be cancelled. */
const stalling = (count: number) => {
  const { promise: stalled, resolve } = Promise.withResolvers<void>();
  const content = async function* content(): AsyncGenerator<Uint8Array> {
    yield* pieces(count, resolve);
    await new Promise(() => {});
  };
  return { content: ReadableStream.from(content()), stalled };
};

/** An endless content that calls `onPiece` with the number of each piece, and resolves `cancelled` if it is cancelled. */
const endless = (onPiece: (number: number) => void) => {
  const { promise: cancelled, resolve } = Promise.withResolvers<void>();
  let number = 0;
  const content = new ReadableStream<Uint8Array>({
    pull: async (sink) => {
      // As from a connection. Without it, a runtime that writes into memory would leave no time to fire the signal.
      await nextTurn();
      sink.enqueue(new Uint8Array(256 * 1024));
      onPiece(number += 1);
    },
    cancel: () => resolve(),
  }, { highWaterMark: 0 });
  return { content, cancelled };
};

export const fileBreakCases: readonly StageCase[] = [
  ...broken,
  [
    'cancels the content if its signal fires, whatever the write does at that moment',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const files = filesOf(stage, sandbox);
      const error = new Error('nobody waits any more');
      for (const count of [1, 5, 20]) {
        for (const options of [{}, { size: 30 * 256 * 1024 }]) {
          const controller = new AbortController();
          const { content, cancelled } = endless((number) => number === count && setImmediate(() => controller.abort(error)));
          const what = `after ${count} pieces, ${JSON.stringify(options)}`;
          await assertRejects(stage.runtime.files.write(sandbox.id, files.at('file'), content, options, controller.signal), error, what);
          await withTimeout(`the content is cancelled ${what}`, cancelled);
        }
      }
    },
    'can share',
  ],
  [
    'ends a write with stalled content if its signal fires, and keeps the old file',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const files = filesOf(stage, sandbox);
      await files.write('dir/file', 'old\n');
      for (const count of [0, 1, 20]) {
        for (const options of [{}, { size: 30 * 256 * 1024 }]) {
          const error = new Error('nobody waits any more');
          const controller = new AbortController();
          const { content, stalled } = stalling(count);
          const writing = stage.runtime.files.write(sandbox.id, files.at('dir/file'), content, options, controller.signal);
          void stalled.then(() => controller.abort(error));
          await assertRejects(writing, error, `${count} ${JSON.stringify(options)}`);
          assert.equal(await files.text('dir/file'), 'old\n', `after ${count} pieces`);
          assert.deepEqual(await files.names('dir'), ['file'], `after ${count} pieces`);
        }
      }
    },
    'can share',
  ],
  [
    'rejects file calls whose signal has fired with its reason, without an effect',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const { id } = sandbox;
      const files = filesOf(stage, sandbox);
      const port = stage.runtime.files;
      await files.write('dir/file', 'old\n');
      const reason = new Error('no longer wanted');
      const fired = AbortSignal.abort(reason);
      const [file, other] = [files.at('dir/file'), files.at('dir/other')];
      const calls: Readonly<Record<keyof SandboxFiles, () => Promise<unknown>>> = {
        stat: () => port.stat(id, file, true, fired),
        read: () => port.read(id, file, ({ size }) => ({ offset: 0, length: size }), fired),
        write: () => port.write(id, file, new Blob(['new\n']).stream(), {}, fired),
        makeDirectory: () => port.makeDirectory(id, other, fired),
        remove: () => port.remove(id, file, false, fired),
        move: () => port.move(id, file, other, fired),
        list: () => port.list(id, files.at('dir'), 1, fired)[Symbol.asyncIterator]().next(),
      };
      for (const [name, call] of Object.entries(calls)) await assertRejects(call(), reason, name);
      assert.deepEqual([await files.names('dir'), await files.text('dir/file')], [['file'], 'old\n']);
    },
    'can share',
  ],
  [
    'removes a sandbox during a write with stalled content',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const files = filesOf(stage, sandbox);
      const contents = [stalling(1), stalling(20)];
      const writes = contents.map(({ content }, index) =>
        stage.runtime.files.write(sandbox.id, files.at(`file-${index}`), content, {}, neverAborts).then(() => 'written', () => 'ended'));
      await Promise.all(contents.map(({ stalled }) => stalled));
      await stage.runtime.remove(sandbox.id);
      assert.deepEqual(await withTimeout(`the writes into the removed ${sandbox.id} end`, Promise.all(writes)), ['ended', 'ended']);
    },
  ],
];
