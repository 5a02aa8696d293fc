import type { AnyMessage } from '@agentclientprotocol/sdk';
import type { Intake } from './intake.ts';

/** The way to the agent. */
export interface Outbound {
  readonly messages: WritableStream<AnyMessage>;
  close(): void;
}

/**
 * What can't be written is dropped: an agent that takes nothing more has ended, and what it said until then is still to be
 * read. The end of its output is what ends the connection.
 */
export function createOutbound(stdin: WritableStream<Uint8Array>, intake: Intake): Outbound {
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
