import assert from 'node:assert/strict';
import { buffer } from 'node:stream/consumers';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { LogRequest, SandboxRuntime } from '../../src/ports/sandbox-runtime.ts';
import { freeze, type SandboxRuntimeStage, type StageCase, waitFor, waitUntilStopped } from './sandbox-runtime-harness.ts';
import { assertFailure, assertRejects, decidedBy, withTimeout } from './contract.ts';

/** The first line of the program `says`, without the line end. */
export const everyByte: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => byte);

async function read(runtime: SandboxRuntime, id: string, request: LogRequest = {}): Promise<Buffer> {
  return await buffer(await runtime.logs(id, request, neverAborts));
}

/** Returns the number of lines of `says` in a log. Fails if a line is missing, cut or repeated. The two outputs may be interleaved. */
function linesIn(log: Buffer): number {
  const numbers = log.toString('latin1').match(/(?<=^|\n)line \d+(?=\n)/g)?.map((text) => Number(text.slice(5))) ?? [];
  assert.deepEqual(numbers.toSorted((a, b) => a - b), Array.from(numbers, (_, index) => index + 1));
  for (const parity of [0, 1]) {
    const ofOne = numbers.filter((number) => number % 2 === parity);
    assert.deepEqual(ofOne, ofOne.toSorted((a, b) => a - b));
  }
  return numbers.length;
}

/** Reads until the stream ends or fails. `bytes` returns the data read until now. */
function following(log: ReadableStream<Uint8Array>): { readonly bytes: () => Buffer; readonly over: Promise<unknown> } {
  let bytes = Buffer.alloc(0);
  const take = async (): Promise<void> => {
    for await (const chunk of log) bytes = Buffer.concat([bytes, chunk]);
  };
  return { bytes: () => bytes, over: take().then(() => null, (error: unknown) => error) };
}

async function counted({ count }: SandboxRuntimeStage, id: string, lines: number): Promise<void> {
  await waitFor(`the program of ${id} writes ${lines} lines`, () => count(id), (written) => written >= lines);
}

async function readsLines({ bytes }: ReturnType<typeof following>, what: string, lines: number): Promise<void> {
  await waitFor(`the reader gets ${what}`, async () => linesIn(bytes()), (read) => read >= lines);
}

export const logCases: readonly StageCase[] = [
  [
    'returns the log of an ended command, and fails if there is no such sandbox',
    async ({ runtime, start, launch }) => {
      const sandbox = launch('exits');
      await start(sandbox);
      await waitUntilStopped(runtime, sandbox.id);
      await waitFor(`the log of ${sandbox.id} has output`, async () => (await read(runtime, sandbox.id)).length, (length) => length > 0);
      for (const follow of [false, true]) assert.equal((await read(runtime, sandbox.id, { follow })).toString(), 'gone\n', `follow: ${follow}`);
      for (const id of [launch('exits').id, 'NO-ID']) {
        await assertFailure(runtime.logs(id, {}, neverAborts), 'sandbox_not_found');
      }
    },
  ],
  [
    'returns every byte of a log in order',
    async (stage) => {
      const { runtime, begun } = stage;
      const { id } = await begun('says');
      await counted(stage, id, 20);
      await runtime.stop(id);
      const log = await read(runtime, id);
      // Only the order within each output is certain.
      const output = Buffer.from(log.toString('latin1').replaceAll(/line \d*[13579]\n/g, ''), 'latin1');
      await decidedBy(stage.traits, 'logs', (kept) => {
        const expected = kept === 'bytes' ? everyByte : new TextEncoder().encode(new TextDecoder().decode(everyByte));
        assert.deepEqual(Uint8Array.from(output.subarray(0, expected.length)), expected);
        assert.equal(output.subarray(expected.length).toString().slice(0, 8), '\nline 2\n');
      });
      assert.ok(linesIn(log) >= 20, `the log has ${linesIn(log)} lines`);
      for (const tailBytes of [0, 1, 7, 100, log.length, log.length + 1]) {
        const end = await read(runtime, id, { tailBytes });
        assert.deepEqual(end, log.subarray(Math.max(0, log.length - tailBytes)), String(tailBytes));
      }
    },
  ],
  [
    'follows a log until its run ends: early and late readers get the same bytes',
    async (stage) => {
      const { runtime, begun, open } = stage;
      const { id } = await begun('says');
      const early = following(await runtime.logs(id, { follow: true }, neverAborts));
      const other = following(await (await open()).logs(id, { follow: true }, neverAborts));
      await counted(stage, id, 30);
      const late = following(await runtime.logs(id, { follow: true }, neverAborts));
      const tail = following(await runtime.logs(id, { follow: true, tailBytes: 100 }, neverAborts));
      await counted(stage, id, 60);
      await runtime.stop(id);
      const all = await read(runtime, id);
      assert.ok(linesIn(all) >= 60, `the log has ${linesIn(all)} lines`);
      for (const [name, reader] of Object.entries({ early, other, late })) {
        await withTimeout(`the log of ${id} ends with its run for the ${name} reader`, reader.over);
        assert.deepEqual(reader.bytes(), all, `the ${name} reader`);
      }
      await withTimeout('the log from its end ends with its run', tail.over);
      assert.ok(tail.bytes().length >= 100, `the reader of the end got ${tail.bytes().length} bytes`);
      assert.deepEqual(tail.bytes(), all.subarray(-tail.bytes().length));
    },
  ],
  [
    'follows a log until its sandbox is killed',
    async (stage) => {
      const { id } = await stage.begun('says');
      const reader = following(await stage.runtime.logs(id, { follow: true }, neverAborts));
      await counted(stage, id, 5);
      await stage.crash(id);
      await withTimeout('the log ends after the kill', reader.over);
      assert.ok(linesIn(reader.bytes()) >= 5, `the reader got ${linesIn(reader.bytes())} lines`);
    },
  ],
  [
    'reads the log of a frozen sandbox, and follows it after a resume',
    async (stage) => {
      const { runtime, begun, resume, count } = stage;
      const sandbox = await begun('says');
      await counted(stage, sandbox.id, 5);
      await freeze(runtime, sandbox.id);
      const before = await count(sandbox.id);
      assert.ok(linesIn(await read(runtime, sandbox.id)) >= before);
      const reader = following(await runtime.logs(sandbox.id, { follow: true }, neverAborts));
      await readsLines(reader, `${before} lines of the frozen ${sandbox.id}`, before);
      assert.equal((await runtime.inspect(sandbox.id)).state, 'frozen');
      await resume(sandbox);
      await readsLines(reader, `more lines of the resumed ${sandbox.id}`, before + 6);
      await runtime.stop(sandbox.id);
      await withTimeout('the log ends after the stop', reader.over);
    },
    'if it freezes',
  ],
  [
    'keeps the logs of earlier runs, and follows only the current run',
    async (stage) => {
      const { runtime, begun, resume } = stage;
      const sandbox = await begun('says');
      await counted(stage, sandbox.id, 5);
      const reader = following(await runtime.logs(sandbox.id, { follow: true }, neverAborts));
      await runtime.stop(sandbox.id);
      const first = await read(runtime, sandbox.id);
      await resume(sandbox);
      await withTimeout('the log ends with its run', reader.over);
      const length = async (): Promise<number> => (await read(runtime, sandbox.id)).length;
      await waitFor(`the log of ${sandbox.id} has more than the ${first.length} bytes of its first run`, length, (now) => now > first.length);
      assert.deepEqual((await read(runtime, sandbox.id)).subarray(0, first.length), first);
    },
  ],
  [
    'ends a log if its signal fires, its reader cancels, the runtime closes or the sandbox is removed',
    async (stage) => {
      const { runtime, begun, open } = stage;
      const { id } = await begun('says');
      const reason = new Error('no longer wanted');
      const controller = new AbortController();
      const told = following(await runtime.logs(id, { follow: true }, controller.signal));
      await waitFor(`the reader of ${id} gets output`, async () => told.bytes().length, (length) => length > 0);
      controller.abort(reason);
      await withTimeout('the log ends after the abort', told.over);
      assert.equal(await told.over, reason, 'the log fails with the reason of the signal');
      await assertRejects(runtime.logs(id, {}, controller.signal), reason);

      const left = (await runtime.logs(id, { follow: true, tailBytes: 0 }, neverAborts)).getReader();
      const pending = left.read();
      await withTimeout('the reader cancels', left.cancel());
      await pending;

      const second = await open();
      const closed = following(await second.logs(id, { follow: true }, neverAborts));
      await second.close();
      await withTimeout('the log ends after the runtime is closed', closed.over);

      const gone = following(await runtime.logs(id, { follow: true }, neverAborts));
      await runtime.remove(id);
      await withTimeout('the log ends after the removal', gone.over);
    },
  ],
];
