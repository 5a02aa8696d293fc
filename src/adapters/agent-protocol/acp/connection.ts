import { type AnyMessage, client, type ClientContext, methods } from '@agentclientprotocol/sdk';
import { z } from 'zod';
import { Refusal } from '../../../domain/failure.ts';
import type { Reason } from '../../../domain/reason.ts';
import type { OpenAgentSession } from '../../../ports/agent-protocol.ts';
import { parseJson } from '../../shared/json.ts';
import { permissionRequest } from './schema.ts';
import type { TurnListener } from './turn-listener.ts';

/** A JSON-RPC connection to an agent. The SDK sees only the messages that {@link readMessages} passes on. */
export interface Connection {
  /** Sends requests to the agent. Open requests reject when the connection ends. */
  readonly agent: ClientContext;
  readonly requests: OpenRequests;
  readonly endReason: () => Reason | null;
  readonly ended: Promise<Reason>;
  /** Idempotent: the first reason stays. */
  readonly end: (reason: Reason) => void;
}

type SessionStreams = Pick<OpenAgentSession, 'streams' | 'onHeld' | 'onOtherOutput'>;

/** `firstId` is the id of the first request. */
export function connect(session: SessionStreams, listener: TurnListener, firstId = 0): Connection {
  const { streams } = session;
  const requests = new OpenRequests(firstId);
  const reader = streams.stdout.getReader();
  const outbound = createOutbound(streams.stdin, requests);
  const { promise: ended, resolve } = Promise.withResolvers<Reason>();
  let endReason: Reason | null = null;

  async function* messages(): ReturnType<typeof readMessages> {
    try {
      yield* readMessages(reader, listener, requests, session);
      end({ code: 'agent_exited' });
    } catch (error) {
      end(error instanceof ConnectionFailure ? error.reason : { code: 'agent_connection_lost' });
    }
  }

  const sdk = client()
    .onRequest(methods.client.session.requestPermission, permissionRequest, async ({ params, signal }) => {
      const optionId = await listener.permission(params, signal);
      return { outcome: optionId === null ? { outcome: 'cancelled' } : { outcome: 'selected', optionId } };
    })
    .connect({ readable: ReadableStream.from(messages()), writable: outbound.messages });

  function end(reason: Reason): void {
    if (endReason !== null) return;
    endReason = reason;
    listener.close();
    sdk.close(new Error(reason.code));
    reader.cancel().catch(() => {});
    outbound.close();
    resolve(reason);
  }

  void sdk.closed.then(() => end({ code: 'agent_connection_lost' }));
  return { agent: sdk.agent, requests, endReason: () => endReason, ended, end };
}

/** Write errors are ignored: the agent's last output may still be unread. The connection ends at the end of that output. */
function createOutbound(stdin: WritableStream<Uint8Array>, requests: OpenRequests) {
  const writer = stdin.getWriter();
  const encoder = new TextEncoder();
  let writing = false;
  return {
    messages: new WritableStream<AnyMessage>({
      async write(message) {
        const sent = requests.beforeSend(message);
        writing = true;
        await writer.write(encoder.encode(`${JSON.stringify(sent)}\n`)).catch(() => {});
        writing = false;
        requests.afterSend(message);
      },
    }),
    close() {
      // A normal close would wait for ever for an agent that does not read.
      const closed = writing ? writer.abort(new Error('the connection was closed')) : writer.close();
      closed.catch(() => {});
    },
  };
}

const maxOpenRequests = 64;

/** The open requests of both sides. Ours get ids from our own counter, so a connection can continue where an earlier one ended. */
class OpenRequests {
  /** By our ids. */
  readonly #sent = new Map<string | number, { readonly id: string | number; readonly method: string }>();
  /** Resolved and replaced at each answer that the agent has got. */
  #nextAnswer = Promise.withResolvers<void>();
  #nextId: number;
  #received = 0;

  constructor(firstId: number) {
    this.#nextId = firstId;
  }

  get nextId(): number {
    return this.#nextId;
  }

  /** Waits while the agent has too many open requests. An agent that does not read our answers would fill the memory with them. */
  async receive(): Promise<void> {
    await this.#untilFewerThan(maxOpenRequests);
    this.#received += 1;
  }

  /** Resolves when the agent has got all answers. */
  async allAnswered(): Promise<void> {
    await this.#untilFewerThan(1);
  }

  /** Returns the message as the agent gets it. */
  beforeSend(message: AnyMessage): AnyMessage {
    if (!('method' in message) || !('id' in message) || message.id === null) return message;
    const id = this.#nextId++;
    this.#sent.set(id, { id: message.id, method: message.method });
    return { ...message, id };
  }

  afterSend(message: AnyMessage): void {
    if ('method' in message) return;
    this.#received -= 1;
    this.#nextAnswer.resolve();
    this.#nextAnswer = Promise.withResolvers();
  }

  /** Returns the method and the SDK's own id of our request. Null if there was no such request. */
  answered(id: string | number): { readonly id: string | number; readonly method: string } | null {
    const asked = this.#sent.get(id) ?? null;
    this.#sent.delete(id);
    return asked;
  }

  async #untilFewerThan(count: number): Promise<void> {
    while (this.#received >= count) await this.#nextAnswer.promise;
  }
}

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
    // An answer repeats it, also the name of an unknown method.
    id: z.union([z.string().max(1000), z.number()]).optional(),
    method: z.string().max(1000).optional(),
    params: z.unknown().optional(),
  })
  .refine(({ id, method }) => id !== undefined || method !== undefined);

/**
 * Yields the messages that the SDK handles: the agent's requests, and its answers to our requests. Updates are handled here, in order.
 * Nothing more is read meanwhile, so a fast agent has to wait, and an answer comes after the updates before it. Lines that are not protocol
 * messages are kept from the SDK, which would log them to the console.
 */
async function* readMessages(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  listener: TurnListener,
  requests: OpenRequests,
  { onHeld = () => {}, onOtherOutput = () => {} }: SessionStreams,
): AsyncGenerator<AnyMessage> {
  let invalidLines = 0;
  for await (const line of linesOf(reader, onHeld)) {
    const parsed = parseJson(envelope, line);
    // An agent that is killed leaves the beginning of a message.
    const isUnfinished = line.startsWith('{') && !line.endsWith('}');
    if (parsed === undefined && !isUnfinished) onOtherOutput(line);
    const { id, method, params } = parsed ?? {};
    const isUpdate = id === undefined && method === methods.client.session.update;
    if (parsed === undefined || (isUpdate && !(await listener.update(params)))) {
      invalidLines += 1;
      if (invalidLines > maxLines) throw new ConnectionFailure({ code: 'agent_output_invalid', maxLines });
      continue;
    }
    invalidLines = 0;
    let forSdk: z.infer<typeof envelope> | null = null;
    if (id !== undefined && method !== undefined) {
      const { data: permission } = permissionRequest.safeParse(method === methods.client.session.requestPermission ? params : null);
      // Not counted while it waits for a turn, which begins only when all requests are answered.
      if (permission !== undefined) await listener.announce(permission);
      await requests.receive();
      // The SDK keeps a request until it is answered, so it gets only what its handler needs. It refuses all other requests.
      const { toolCallId } = permission?.toolCall ?? {};
      forSdk = { jsonrpc: '2.0', id, method, params: permission && { ...permission, toolCall: { toolCallId } } };
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
const keptBytes = 64 << 10;

/**
 * Yields the lines of a stream, including a last line without a newline. Only one chunk and the beginning of one line are in memory. A
 * chunk can be a single byte, so the beginning is one buffer, not a list of chunks.
 */
async function* linesOf(reader: ReadableStreamDefaultReader<Uint8Array>, onHeld: (bytes: number) => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let begun = Buffer.alloc(0);
  let bytes = 0;
  const add = (part: Uint8Array): void => {
    const size = bytes + part.length;
    if (size > maxBytes) throw new ConnectionFailure({ code: 'agent_line_too_long', maxBytes });
    if (size > begun.length) begun = Buffer.concat([begun.subarray(0, bytes)], Math.min(2 * size, maxBytes));
    begun.set(part, bytes);
    bytes = size;
  };
  const finish = (): string => {
    const line = decoder.decode(begun.subarray(0, bytes));
    // A buffer for a long line is not kept.
    if (begun.length > keptBytes) begun = Buffer.alloc(0);
    bytes = 0;
    return line;
  };
  for (;;) {
    const { value: chunk, done } = await reader.read();
    if (done) break;
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      add(chunk.subarray(start, end));
      // The line, its newline and what follows in the chunk: a turn can begin with this line.
      onHeld(bytes + chunk.length - end);
      start = end + 1;
      yield finish();
    }
    if (start < chunk.length) add(chunk.subarray(start));
    onHeld(bytes);
  }
  if (bytes > 0) yield finish();
}
