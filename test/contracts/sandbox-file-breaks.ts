import assert from 'node:assert/strict';
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
      await assert.rejects(files.write('dir/file', pieces(count, fail), { size }), (thrown) => thrown === error);
      const controller = new AbortController();
      const content = ReadableStream.from(pieces(count, () => controller.abort(error)));
      const { id } = sandbox;
      const endless = new ReadableStream<Uint8Array>({
        async start(sink) {
          for await (const chunk of content) sink.enqueue(chunk);
        },
      });
      await assert.rejects(
        stage.runtime.files.write(id, files.at('dir/file'), endless, { size }, controller.signal), (thrown) => thrown === error,
      );
      assert.equal(await files.text('dir/file'), 'old\n');
      assert.deepEqual(await files.names('dir'), ['file']);
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

export const fileBreakCases: readonly StageCase[] = [
  ...broken,
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
          await assert.rejects(writing, (thrown) => thrown === error, `${count} ${JSON.stringify(options)}`);
          assert.equal(await files.text('dir/file'), 'old\n');
          assert.deepEqual(await files.names('dir'), ['file']);
        }
      }
    },
    'can share',
  ],
  [
    'removes a sandbox during a write with stalled content',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const files = filesOf(stage, sandbox);
      const contents = [stalling(1), stalling(20)];
      const controller = new AbortController();
      const writes = contents.map(({ content }, index) =>
        stage.runtime.files.write(sandbox.id, files.at(`file-${index}`), content, {}, controller.signal).then(() => 'written', () => 'ended'));
      await Promise.all(contents.map(({ stalled }) => stalled));
      await stage.runtime.remove(sandbox.id);
      // In a runtime in memory, only the signal ends a write.
      if (stage.traits.ports !== 'served') controller.abort(new Error('nobody waits any more'));
      assert.deepEqual(await Promise.all(writes), ['ended', 'ended']);
    },
  ],
];
