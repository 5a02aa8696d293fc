import { methods, type AnyMessage } from '@agentclientprotocol/sdk';
import { z } from 'zod';
import { Refusal } from '../../../domain/failure.ts';
import { parseJson } from '../../shared/json.ts';
import type { OpenRequests } from './connection.ts';
import type { TurnListener } from './turn-listener.ts';
import { oneLine } from './updates.ts';

/** Thrown to end the connection. */
export class ConnectionFailure extends Refusal {}

/** A longer line from the agent ends the connection. */
const maxBytes = 16 * 2 ** 20;

/** More consecutive invalid lines than this end the connection. */
const maxLines = 1000;

/** A JSON-RPC message. The SDK checks the rest. */
const envelope = z
  .looseObject({
    jsonrpc: z.literal('2.0'),
    id: z.union([z.string(), z.number()]).optional(),
    method: z.string().optional(),
    params: z.unknown().optional(),
  })
  .refine(({ id, method }) => id !== undefined || method !== undefined);

/**
 * Yields the messages that the SDK handles: the agent's requests, and its answers to our requests. Updates are handled here, in order.
 * Nothing more is read meanwhile, so a fast agent has to wait, and an answer comes after the updates before it. Lines that are not protocol
 * messages are dropped, because the SDK would log them to the console.
 */
export async function* readMessages(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  listener: TurnListener,
  requests: OpenRequests,
  onHeld: (bytes: number) => void,
): AsyncGenerator<AnyMessage> {
  let invalidLines = 0;
  let firstInvalid = '';
  const countInvalid = (line: string): void => {
    if (invalidLines === 0) firstInvalid = line;
    invalidLines += 1;
    if (invalidLines <= maxLines) return;
    const firstLine = oneLine(firstInvalid.slice(0, 200));
    throw new ConnectionFailure({ code: 'agent_output_invalid', maxLines, firstLine });
  };
  for await (const line of linesOf(reader, onHeld)) {
    const parsed = parseJson(envelope, line);
    const { id, method, params } = parsed ?? {};
    const isUpdate = id === undefined && method === methods.client.session.update;
    if (parsed === undefined || (isUpdate && !(await listener.update(params)))) {
      countInvalid(line);
      continue;
    }
    invalidLines = 0;
    let forSdk: z.infer<typeof envelope> | null = null;
    if (id !== undefined && method !== undefined) {
      await requests.receive();
      if (method === methods.client.session.requestPermission) await listener.announce(params);
      forSdk = parsed;
    } else if (id !== undefined) {
      const asked = requests.answered(id);
      if (asked?.method === methods.agent.session.prompt) listener.end();
      forSdk = asked && { ...parsed, id: asked.id };
    } else if (method === methods.protocol.cancelRequest) forSdk = parsed;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its envelope is checked here, the rest by the SDK
    if (forSdk !== null) yield forSdk as AnyMessage;
  }
}

const newline = 0x0a;

/** Yields the lines of a stream, including a last line without a newline. Only one chunk and the beginning of one line are in memory. */
async function* linesOf(reader: ReadableStreamDefaultReader<Uint8Array>, onHeld: (bytes: number) => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let begun: Uint8Array[] = [];
  let bytes = 0;
  const add = (part: Uint8Array): void => {
    bytes += part.length;
    if (bytes > maxBytes) throw new ConnectionFailure({ code: 'agent_line_too_long', maxBytes });
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
    onHeld(bytes);
  }
  if (bytes > 0) yield finish();
}
