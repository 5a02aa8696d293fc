import { finished, type Readable, type Writable } from 'node:stream';
import type { ExecutionRequest } from '../../ports/sandbox-runtime.ts';
import type { HostExecution } from './execution-host.ts';

/** How many bytes a stream buffers for its reader. The last chunk may exceed it. */
const readyBytes = 64 * 1024;

/**
 * Returns the output of a command as a web stream. It stops reading if nobody reads, so the command has to wait. If it is cancelled, the
 * rest is discarded. It ends when the source ends or breaks.
 */
export function outputStream(source: Readable): ReadableStream<Uint8Array> {
  let isOver = false;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        source.on('data', (chunk: Uint8Array) => {
          if (isOver) return;
          controller.enqueue(chunk);
          if ((controller.desiredSize ?? 0) <= 0) source.pause();
        });
        // Only the exit code shows how a command ended. So an error ends the stream like any other end.
        finished(source, { writable: false }, () => {
          if (!isOver) controller.close();
          isOver = true;
        });
        source.pause();
      },
      pull: () => void source.resume(),
      cancel() {
        isOver = true;
        source.resume();
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: readyBytes }),
  );
}

/**
 * Returns the input of a command as a web stream. A write waits until it is accepted, and rejects if nobody reads any more. A close never
 * rejects.
 */
export function inputStream(target: Writable): WritableStream<Uint8Array> {
  // A failed write reports its error itself.
  target.on('error', () => {});
  const end = (): Promise<void> =>
    new Promise((resolve) => {
      target.once('close', resolve).end(resolve);
      if (target.destroyed) resolve();
    });
  return new WritableStream<Uint8Array>({
    write: (chunk) =>
      new Promise((resolve, reject) => {
        target.write(chunk, (error) => (error ? reject(new Error('the command reads no more', { cause: error })) : resolve()));
      }),
    close: end,
    abort: end,
  });
}

/** An execution of a command that can't run. It has already ended, and its standard error contains the reason. */
export function refusedExecution(exitCode: 126 | 127, reason: string): HostExecution {
  return {
    stdin: new WritableStream({
      write: () => {
        throw new Error('the command reads no more');
      },
    }),
    stdout: ReadableStream.from<Uint8Array>([]),
    stderr: ReadableStream.from([new TextEncoder().encode(`${reason}\n`)]),
    exited: Promise.resolve(exitCode),
    kill: async () => {},
    outlive: () => {},
  };
}

/** Returns why the command of a request can't run on any system. Null if it may run. */
export function whyUnrunnable({ command, env = {} }: ExecutionRequest): string | null {
  if (command.length === 0 || command[0] === '') return 'the command has no program';
  if ([...command, ...Object.entries(env).flat()].some((text) => text.includes('\0')))
    return 'the command or its environment holds a NUL character';
  const misnamed = Object.keys(env).find((name) => name === '' || name.includes('='));
  return misnamed === undefined ? null : `${JSON.stringify(misnamed)} is no name of an environment variable`;
}
