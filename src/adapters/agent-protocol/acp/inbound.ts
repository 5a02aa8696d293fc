import { type AnyMessage, methods } from '@agentclientprotocol/sdk';
import type { Intake } from './connection.ts';
import type { Listener } from './listener.ts';
import { words } from './updates.ts';

export interface InboundLimits {
  /** Of one line. */
  readonly lineBytes: number;
  /** Lines in a row that are no message of the protocol. */
  readonly rubbishLines: number;
}

/** The other side says too much that is not the protocol. */
export class Rubbish extends Error {}

/**
 * The messages of the agent that the SDK deals with: requests, and answers to what was asked. Updates never reach it: they are
 * taken here, in order, and nothing is read on meanwhile, so that an agent is held back and an answer is
 * passed on only after what was said before it. Nor does what is not the protocol, of which the SDK would write to the console.
 */
export async function* inbound(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  listener: Listener,
  intake: Intake,
  limits: InboundLimits,
): AsyncGenerator<AnyMessage> {
  const rubbish = new RubbishCount(limits.rubbishLines);
  for await (const line of linesOf(reader, limits.lineBytes)) {
    const heard = hear(line);
    switch (heard.kind) {
      case 'rubbish':
        rubbish.count(line);
        continue;
      case 'notification':
        if (heard.method === methods.client.session.update && !(await listener.update(heard.params))) {
          rubbish.count(line);
          continue;
        }
        if (heard.method === methods.protocol.cancelRequest) yield heard.message;
        break;
      case 'request':
        await intake.enter();
        if (heard.method === methods.client.session.requestPermission) await listener.announce(heard.params);
        yield heard.message;
        break;
      case 'response': {
        const method = intake.answered(heard.id);
        if (method === methods.agent.session.prompt) listener.end();
        if (method !== null) yield heard.message;
        break;
      }
    }
    rubbish.forget();
  }
}

class RubbishCount {
  readonly #max: number;
  #lines = 0;
  #first = '';

  constructor(max: number) {
    this.#max = max;
  }

  count(line: string): void {
    if (this.#lines === 0) this.#first = line;
    this.#lines += 1;
    if (this.#lines > this.#max) throw new Rubbish(`its output is not the protocol's: more than ${this.#max} lines in a row, the first "${words(this.#first.slice(0, 200))}"`);
  }

  forget(): void {
    this.#lines = 0;
  }
}

/** What a line of the agent's is, as far as JSON-RPC goes. */
type Heard =
  | { readonly kind: 'request'; readonly id: string | number; readonly method: string; readonly params: unknown; readonly message: AnyMessage }
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown; readonly message: AnyMessage }
  | { readonly kind: 'response'; readonly id: string | number; readonly message: AnyMessage }
  | { readonly kind: 'rubbish' };

const rubbish: Heard = { kind: 'rubbish' };

function hear(line: string): Heard {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return rubbish;
  }
  if (!isRecord(value) || value['jsonrpc'] !== '2.0') return rubbish;
  const { id, method, params } = value;
  // Its members were looked at; the SDK looks at the rest.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the checks above are those of its type
  const message = value as AnyMessage;
  if (typeof method === 'string') {
    if (isId(id)) return { kind: 'request', id, method, params, message };
    return 'id' in value ? rubbish : { kind: 'notification', method, params, message };
  }
  return isId(id) && !('method' in value) ? { kind: 'response', id, message } : rubbish;
}

function isId(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const newline = 0x0a;

/** The other side wrote a line that is longer than what is held in memory for it. */
export class LineTooLong extends Error {}

/**
 * The lines of a stream, one at a time: nothing is read while the last one is worked on, so that what is held is one
 * chunk of the stream and the beginning of one line. A last line without an end counts too.
 */
async function* linesOf(reader: ReadableStreamDefaultReader<Uint8Array>, maxBytes: number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let begun: Uint8Array[] = [];
  let bytes = 0;
  const hold = (part: Uint8Array): void => {
    bytes += part.length;
    if (bytes > maxBytes) throw new LineTooLong();
    begun.push(part);
  };
  const take = (): string => {
    const line = decoder.decode(begun.length === 1 ? begun[0] : Buffer.concat(begun));
    begun = [];
    bytes = 0;
    return line;
  };
  for (;;) {
    const { value: chunk, done } = await reader.read();
    if (done) break;
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      hold(chunk.subarray(start, end));
      start = end + 1;
      yield take();
    }
    if (start < chunk.length) hold(chunk.subarray(start));
  }
  if (bytes > 0) yield take();
}
