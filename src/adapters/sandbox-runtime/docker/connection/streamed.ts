import { IncomingMessage } from 'node:http';

/** The answer of a call that the engine streams. dockerode says less of it than it is. */
export function streamed(answer: unknown): IncomingMessage {
  if (answer instanceof IncomingMessage) return answer;
  throw new TypeError('the client does not answer with a stream of HTTP');
}
