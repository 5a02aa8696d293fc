import { createAcpProtocol } from '../../../../src/adapters/agent-protocol/acp/index.ts';
import type { AgentClient, AgentSession, AgentTurn } from '../../../../src/ports/agent-protocol.ts';
import { never, recordingClient, type RecordingClient } from '../../../contracts/agent-harness.ts';
import { withTimeout } from '../../../contracts/contract.ts';

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: unknown;
}

export interface AgentByHand {
  readonly session: AgentSession;
  readonly client: RecordingClient;
  /** Sends them in one chunk. */
  readonly send: (...messages: readonly Message[]) => void;
  readonly says: (text: string) => void;
  readonly saying: (text: string) => Message;
  /** The next message of the client. */
  readonly heard: () => Promise<Message>;
  /** Answers when the client has dealt with everything that was sent before. */
  readonly dealtWith: () => Promise<void>;
  /** Begins a turn, and answers with what ends it. */
  readonly turn: () => Promise<{ readonly ends: Promise<AgentTurn>; readonly answer: (result?: object, ...after: readonly Message[]) => void; readonly fail: (message: string) => void }>;
  /** Ends the agent's output, after what was sent before. */
  readonly end: () => void;
  /** Answers when the client wants no more of the agent's output. */
  readonly unheard: Promise<void>;
  /** How many chunks the client has read of the agent's output. */
  readonly reads: () => number;
}

/** What is put in and not taken out yet. */
class Channel<T> {
  readonly #values: T[] = [];
  #wake: () => void = () => {};

  get size(): number {
    return this.#values.length;
  }

  put(value: T): void {
    this.#values.push(value);
    this.#wake();
  }

  async take(): Promise<T> {
    for (;;) {
      const value = this.#values.shift();
      if (value !== undefined) return value;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function saying(text: string): Message {
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } };
  return { method: 'session/update', params: { sessionId: 's', update } };
}

/** How much the agent takes in without being listened to by the test. */
const inputMessages = 100;

/** An agent whose every message the test writes itself, with an open session. */
export async function agentByHand(parts: Partial<AgentClient> = {}): Promise<AgentByHand> {
  const input = new Channel<Message>();
  const output = new Channel<Uint8Array | 'end'>();
  let reads = 0;
  let marks = 0;

  const stdin = new WritableStream<Uint8Array>({
    write(chunk) {
      input.put(JSON.parse(new TextDecoder().decode(chunk)) as Message);
      return input.size < inputMessages ? undefined : new Promise<never>(() => {});
    },
  });
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const chunk = await output.take();
    if (chunk === 'end') return controller.close();
    controller.enqueue(chunk);
    reads += 1;
  };
  const { promise: unheard, resolve: cancel } = Promise.withResolvers<void>();
  const stdout = new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 });

  const send = (...messages: readonly Message[]): void => {
    output.put(new TextEncoder().encode(messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('')));
  };
  const heard = (): Promise<Message> => withTimeout('a message of the client', input.take());

  const client = recordingClient(parts);
  const opening = createAcpProtocol().open({ streams: { stdin, stdout }, workingDir: '/', authMethod: null, sessionId: null, client }, never);
  send({ id: (await heard()).id ?? 0, result: { protocolVersion: 1 } });
  send({ id: (await heard()).id ?? 0, result: { sessionId: 's' } });
  const session = await withTimeout('a session', opening);

  return {
    session,
    client,
    send,
    heard,
    saying,
    says: (text) => send(saying(text)),
    async dealtWith() {
      const id = `mark-${(marks += 1)}`;
      send({ id, method: '_test/mark' });
      while ((await heard()).id !== id);
    },
    async turn() {
      const ends = withTimeout('the turn ends', session.prompt({ content: [{ type: 'text', text: 'go' }] }));
      const { id = 0 } = await heard();
      return {
        ends,
        answer: (result = { stopReason: 'end_turn' }, ...after) => send({ id, result }, ...after),
        fail: (message) => send({ id, error: { code: -32_000, message } }),
      };
    },
    end: () => output.put('end'),
    unheard,
    reads: () => reads,
  };
}
