import { IncomingMessage } from 'node:http';
import { addAbortSignal } from 'node:stream';
import type { Connection } from '../connect.ts';
import { withSignal } from './with-signal.ts';

/** The engine's tar of a path, which fails when the signal fires. */
export async function readArchive({ docker, call }: Connection, container: string, path: string, signal: AbortSignal): Promise<IncomingMessage> {
  const answer = await call((abortSignal) => docker.getContainer(container).getArchive(withSignal({ path }, abortSignal)), { signal });
  if (!(answer instanceof IncomingMessage)) throw new TypeError('the client answers with something else than a response');
  // A caller that has left reads no error either.
  answer.on('error', () => {});
  return addAbortSignal(signal, answer);
}
