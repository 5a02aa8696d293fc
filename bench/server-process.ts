import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** The message of a benchmark server to its parent when it listens. */
export interface Listening {
  readonly url: string;
  /** Empty if none is needed. */
  readonly key: string;
}

export interface ServerProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly listening: Listening;
}

/** Starts a server in its own process, with the executable's flag. The message starts its work. It ends when it is disconnected. */
export async function startServerProcess(module: string, message: string | object): Promise<ServerProcess> {
  const execArgv = ['--expose-gc', '--external-memory-accounted-in-global-limit'];
  const child = fork(join(import.meta.dirname, module), { env: { ...process.env, NODE_ENV: 'production' }, execArgv });
  child.send(message);
  const [listening]: unknown[] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  if (!isListening(listening)) throw new Error(`${module} ended with ${String(listening)}`);
  return {
    child,
    listening,
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

function isListening(message: unknown): message is Listening {
  return typeof message === 'object' && message !== null && 'url' in message && 'key' in message;
}
