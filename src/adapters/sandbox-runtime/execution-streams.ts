import { finished, type Readable, type Writable } from 'node:stream';
import type { ExecutionRequest } from '../../ports/sandbox-runtime.ts';
import type { HostExecution } from './execution-host.ts';

/** How much a stream holds ready for who reads it, in bytes; a chunk may go beyond it. */
const readyBytes = 64 * 1024;

/**
 * What a command writes, as a web stream. It is read as far as it is wanted, so that what nobody reads holds the command
 * back. Cancelled, it is drained. It ends when the source ends or goes away.
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
        // A command's exit says how it ended, and not its output: an error is an end like any other.
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
 * What a command reads, as a web stream whose writes wait until they are taken. They reject once nobody reads any more;
 * closing it never does.
 */
export function inputStream(target: Writable): WritableStream<Uint8Array> {
  // A write that fails says so itself.
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

/** An execution of a command that can't be run: it has ended already, and says why on its standard error. */
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

/** Returns why no system can run the command of a request. Null if one may. */
export function whyUnrunnable({ command, env = {} }: ExecutionRequest): string | null {
  if (command.length === 0 || command[0] === '') return 'the command has no program';
  if ([...command, ...Object.entries(env).flat()].some((text) => text.includes('\0')))
    return 'the command or its environment holds a NUL character';
  const misnamed = Object.keys(env).find((name) => name === '' || name.includes('='));
  return misnamed === undefined ? null : `${JSON.stringify(misnamed)} is no name of an environment variable`;
}
