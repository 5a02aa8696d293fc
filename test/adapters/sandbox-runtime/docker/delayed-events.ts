import { IncomingMessage } from 'node:http';
import Docker from 'dockerode';

/** Yields the engine's events, one per line, when and in which order they are to arrive. */
type Arrival = (events: AsyncIterable<string>) => AsyncIterable<string>;

async function* linesOf(chunks: AsyncIterable<unknown>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield `${line}\n`;
  }
}

export const isEvent = (line: string, ...actions: readonly string[]): boolean => actions.some((action) => line.includes(`"Action":"${action}"`));

/** Gets each response that is no event. The runtime gets it when `pass` is called. */
type See = (path: string, response: unknown, pass: () => void) => void;

/** A client of the real engine whose events arrive as the test wants. */
export function clientOf(arrival: Arrival, see: See = (_path, _response, pass) => pass()): Docker {
  const docker = new Docker();
  const dial = docker.modem.dial.bind(docker.modem);
  docker.modem.dial = (options, callback) => dial(options, (error, response) => {
    if (options.path.startsWith('/events') && response instanceof IncomingMessage) {
      const chunks = response[Symbol.asyncIterator]();
      response[Symbol.asyncIterator] = async function* (): AsyncGenerator<string, undefined> {
        yield* arrival(linesOf(chunks));
        return undefined;
      };
      callback?.(error, response);
    } else see(options.path, response, () => callback?.(error, response));
  });
  return docker;
}
