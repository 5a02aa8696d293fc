import { client, methods, type ClientContext } from '@agentclientprotocol/sdk';
import type { AgentStreams } from '../../../ports/agent-protocol.ts';
import { inbound, Rubbish, type InboundLimits } from './inbound.ts';
import { Intake } from './intake.ts';
import { LineTooLong } from './lines.ts';
import { NotTaken, type Listener } from './listener.ts';
import { createOutbound } from './outbound.ts';
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
