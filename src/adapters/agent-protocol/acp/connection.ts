import { type AnyMessage, client, type ClientContext, methods } from '@agentclientprotocol/sdk';
import type { AgentStreams } from '../../../ports/agent-protocol.ts';
import { inbound, type InboundLimits, LineTooLong, Rubbish } from './inbound.ts';
import { type Listener, NotTaken } from './listener.ts';
import { permissionRequest } from './schema.ts';

/** Two ends of a conversation in JSON-RPC, of which the SDK sees only what {@link inbound} lets through. */
export interface Connection {
  /** Whom to ask. A question that has no answer yet rejects when the connection ends. */
  readonly agent: ClientContext;
  /** Why it has ended, in words; null while it has not. */
  readonly why: () => string | null;
  readonly ended: Promise<string>;
  /** Idempotent: the first reason stays. */
  readonly end: (why: string) => void;
}

export function connect(streams: AgentStreams, listener: Listener, limits: InboundLimits): Connection {
  const intake = new Intake();
  const reader = streams.stdout.getReader();
  const outbound = createOutbound(streams.stdin, intake);
  const { promise: ended, resolve } = Promise.withResolvers<string>();
  let why: string | null = null;

  async function* messages(): ReturnType<typeof inbound> {
    try {
      yield* inbound(reader, listener, intake, limits);
      end('the agent has ended');
    } catch (error) {
      end(reasonOf(error, limits));
    }
  }

  const sdk = client()
    .onRequest(methods.client.session.requestPermission, permissionRequest, async ({ params, signal }) => {
      const optionId = await listener.permission(params, signal);
      return { outcome: optionId === null ? { outcome: 'cancelled' } : { outcome: 'selected', optionId } };
    })
    .connect({ readable: ReadableStream.from(messages()), writable: outbound.messages });

  function end(reason: string): void {
    if (why !== null) return;
    why = reason;
    listener.end();
    sdk.close(new Error(reason));
    reader.cancel().catch(() => {});
    outbound.close();
    resolve(reason);
  }

  void sdk.closed.then(() => end('the connection has ended'));
  return { agent: sdk.agent, why: () => why, ended, end };
}

function reasonOf(error: unknown, { lineBytes }: InboundLimits): string {
  if (error instanceof Rubbish) return error.message;
  if (error instanceof NotTaken) return 'what the agent said could not be taken in';
  if (error instanceof LineTooLong) return `the agent wrote a line of more than ${lineBytes} bytes`;
  return 'the connection to the agent broke off';
}

/** The way to the agent. */
interface Outbound {
  readonly messages: WritableStream<AnyMessage>;
  close(): void;
}

/**
 * What can't be written is dropped: an agent that takes nothing more has ended, and what it said until then is still to be
 * read. The end of its output is what ends the connection.
 */
function createOutbound(stdin: WritableStream<Uint8Array>, intake: Intake): Outbound {
  const writer = stdin.getWriter();
  const encoder = new TextEncoder();
  let writing = false;
  return {
    messages: new WritableStream({
      async write(message) {
        intake.sending(message);
        writing = true;
        await writer.write(encoder.encode(`${JSON.stringify(message)}\n`)).catch(() => {});
        writing = false;
        intake.sent(message);
      },
    }),
    close() {
      // An agent that does not read would hold up an orderly close for ever.
      const closed = writing ? writer.abort(new Error('the connection was closed')) : writer.close();
      closed.catch(() => {});
    },
  };
}

const maxOpenRequests = 64;

/** What is open between the two sides: requests of theirs that are not answered yet, and ours. */
export class Intake {
  readonly #asked = new Map<string | number, string>();
  #open = 0;
  #waiting: (() => void) | null = null;

  /** Waits while the other side has too many requests open: it would make us hold the answers that it does not read. */
  async enter(): Promise<void> {
    while (this.#open >= maxOpenRequests) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
    this.#open += 1;
  }

  /** To be told of a message before it is sent. */
  sending(message: AnyMessage): void {
    if ('method' in message && 'id' in message && message.id !== null) this.#asked.set(message.id, message.method);
  }

  /** To be told of the same message when it is out. */
  sent(message: AnyMessage): void {
    if ('method' in message) return;
    this.#open -= 1;
    this.#waiting?.();
  }

  /** The method that was asked under this id, once; null where nothing was. */
  answered(id: string | number): string | null {
    const method = this.#asked.get(id) ?? null;
    this.#asked.delete(id);
    return method;
  }
}
