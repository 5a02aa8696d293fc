import { methods, type AnyMessage } from '@agentclientprotocol/sdk';
import type { OpenRequests } from './connection.ts';
import type { Listener } from './listener.ts';
import { oneLine } from './updates.ts';

export interface InboundLimits {
  /** The longest line. */
  readonly lineBytes: number;
  /** How many lines in a row may be no message of the protocol. */
  readonly invalidLines: number;
}

/** The agent wrote too many lines that are no message of the protocol. */
export class InvalidOutput extends Error {
  readonly firstLine: string;

  constructor(firstLine: string) {
    super('the output is not of the protocol');
    this.firstLine = firstLine;
  }
}

/** The agent wrote a line that is longer than what is kept in memory. */
export class LineTooLong extends Error {}

/**
 * Yields the agent's messages that the SDK handles: requests, and answers to our requests. Updates are handled here, in order,
 * and nothing more is read meanwhile: so a fast agent is held back, and an answer comes after the updates before it. Lines that
 * are no message of the protocol are dropped, because the SDK would write about them to the console.
 */
export async function* inbound(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  listener: Listener,
  requests: OpenRequests,
  limits: InboundLimits,
): AsyncGenerator<AnyMessage> {
  let invalidLines = 0;
  let firstInvalid = '';
  const countInvalid = (line: string): void => {
    if (invalidLines === 0) firstInvalid = line;
    invalidLines += 1;
    if (invalidLines > limits.invalidLines) throw new InvalidOutput(oneLine(firstInvalid.slice(0, 200)));
  };
  for await (const line of linesOf(reader, limits.lineBytes)) {
    const parsed = parse(line);
    switch (parsed.kind) {
      case 'invalid':
        countInvalid(line);
        continue;
      case 'notification':
        if (parsed.method === methods.client.session.update && !(await listener.update(parsed.params))) {
          countInvalid(line);
          continue;
        }
        if (parsed.method === methods.protocol.cancelRequest) yield parsed.message;
        break;
      case 'request':
        await requests.receive();
        if (parsed.method === methods.client.session.requestPermission) await listener.announce(parsed.params);
        yield parsed.message;
        break;
      case 'response': {
        const method = requests.answered(parsed.id);
        if (method === methods.agent.session.prompt) listener.end();
        if (method !== null) yield parsed.message;
        break;
      }
    }
    invalidLines = 0;
  }
}

/** A line as a message of JSON-RPC. */
type Parsed =
  | { readonly kind: 'request' | 'notification'; readonly method: string; readonly params: unknown; readonly message: AnyMessage }
  | { readonly kind: 'response'; readonly id: string | number; readonly message: AnyMessage }
  | { readonly kind: 'invalid' };

const invalid: Parsed = { kind: 'invalid' };

function parse(line: string): Parsed {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return invalid;
  }
  if (!isRecord(value) || value['jsonrpc'] !== '2.0') return invalid;
  const { id, method, params } = value;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its envelope is checked here, the rest by the SDK
  const message = value as AnyMessage;
  if (typeof method === 'string') {
    if (isId(id)) return { kind: 'request', method, params, message };
    return 'id' in value ? invalid : { kind: 'notification', method, params, message };
  }
  return isId(id) && !('method' in value) ? { kind: 'response', id, message } : invalid;
}

function isId(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const newline = 0x0a;

/**
 * Yields the lines of a stream, also a last one without an end. Nothing is read while a line is handled, so only one chunk of
 * the stream and the beginning of one line are in memory.
 */
async function* linesOf(reader: ReadableStreamDefaultReader<Uint8Array>, maxBytes: number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let begun: Uint8Array[] = [];
  let bytes = 0;
  const add = (part: Uint8Array): void => {
    bytes += part.length;
    if (bytes > maxBytes) throw new LineTooLong();
    begun.push(part);
  };
  const finish = (): string => {
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
      add(chunk.subarray(start, end));
      start = end + 1;
      yield finish();
    }
    if (start < chunk.length) add(chunk.subarray(start));
  }
  if (bytes > 0) yield finish();
}
