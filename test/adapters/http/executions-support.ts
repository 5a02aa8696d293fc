import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type ClientOptions, WebSocket } from 'ws';
import { type MemoryCommand, terminalSizes } from '../../doubles/memory/index.ts';
import { type Json, object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import type { World } from './world.ts';

/** The output of the command `random`, which it writes in parts. */
export const randomOutput = randomBytes(600_000);

const bytes = (text: string) => new TextEncoder().encode(text);

/** `cat` copies its input, `errs` writes to both outputs, `random` writes bytes, `flood` never ends, `/bin/sh` ends with 3, `sleep` waits for a signal. */
export const commands: MemoryCommand = async ({ request: { command }, stdin, stdout, stderr, signal, step }) => {
  const [name = '', ...words] = command;
  const [out, err] = [stdout.getWriter(), stderr.getWriter()];
  const killed = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve());
  });
  switch (name) {
    case 'echo':
    case '/bin/sh':
      await out.write(bytes(`${words.join(' ')}\n`));
      return name === 'echo' ? 0 : 3;
    case 'cat':
      for await (const part of stdin) await out.write(part);
      return 0;
    case 'errs':
      await out.write(bytes('out'));
      await err.write(bytes('err'));
      return 7;
    case 'random':
      for (let at = 0; at < randomOutput.length; at += 5000) {
        await step();
        await out.write(randomOutput.subarray(at, at + 5000));
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
      return 3;
    case 'flood':
      for (;;) {
        await step();
        await out.write(new Uint8Array(65_536));
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
    default:
      await killed;
      return 0;
  }
};

/** Starts a sandbox for Ann, waits until it runs, and returns its id and the path of its executions. */
export async function runningSandbox(world: World): Promise<{ readonly id: string; readonly path: string }> {
  const id = String(object(await world.ann('POST', '/api/v1/sandboxes'))['id']);
  await until(() => world.ann('GET', `/api/v1/sandboxes/${id}`), (answer) => object(answer)['status'] === 'RUNNING', 60_000);
  return { id, path: `/api/v1/sandboxes/${id}/executions` };
}

/** Returns the size that the runtime was told last for the terminal of an execution. */
export function terminalSize({ engine }: World, sandboxId: string, path: string) {
  return terminalSizes.get(engine.execution(sandboxId, path.split('/').at(-1) ?? ''));
}

/** An attached client, and what it has received. */
export interface Attached {
  readonly socket: WebSocket;
  readonly controls: Json[];
  readonly bytes: { stdout: Buffer; stderr: Buffer };
  /** Waits for the control message. */
  told(wanted: (message: Json) => boolean): Promise<Json>;
  readonly closed: Promise<number>;
}

export function attach(url: string, headers: Readonly<Record<string, string>>, options: ClientOptions = {}): Attached {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), { ...options, headers });
  const controls: Json[] = [];
  const bytes = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  let stream: 'stdout' | 'stderr' = 'stdout';
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) {
      bytes[stream] = Buffer.concat([bytes[stream], data]);
      return;
    }
    const message = JSON.parse(data.toString()) as Json;
    controls.push(message);
    if (message['stream'] !== undefined) stream = message['stream'] as typeof stream;
  });
  socket.on('error', () => {});
  const closed = once(socket, 'close').then(([code]) => Number(code));
  const find = (wanted: (message: Json) => boolean) => controls.find(wanted);
  return { socket, controls, bytes, closed, told: async (wanted) => (await until(() => find(wanted), Boolean, 60_000))! };
}

/** Returns the status and body of the response to a refused request for a WebSocket. */
export async function refusedAttach(url: string, headers: Readonly<Record<string, string>>): Promise<{ readonly status: number; readonly body: Json }> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers });
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: Json }>();
  socket.on('open', () => reject(new Error('it was accepted')));
  socket.on('error', () => {});
  socket.on('unexpected-response', (_request, response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (part: string) => (text += part));
    response.on('end', () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as Json }));
  });
  return await promise;
}
