import { createAcpProtocol } from '../../../../src/adapters/agent-protocol/acp/index.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { AgentClient, AgentSession, AgentTurn } from '../../../../src/ports/agent-protocol.ts';
import { recordingClient, type RecordingClient } from '../../../contracts/agent-harness.ts';
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
  /** Sends the messages in one chunk. */
  readonly send: (...messages: readonly Message[]) => void;
  readonly says: (text: string) => void;
  readonly saying: (text: string) => Message;
  /** Resolves to the next message of the client. */
  readonly heard: () => Promise<Message>;
  /** Resolves when the client has handled everything that was sent before. */
  readonly dealtWith: () => Promise<void>;
  /** Starts a turn. Returns its result, and functions that end it. */
  readonly turn: () => Promise<{ readonly ends: Promise<AgentTurn>; readonly answer: (result?: object, ...after: readonly Message[]) => void; readonly fail: (message: string) => void }>;
  /** Ends the agent's output, after what was sent before. */
  readonly end: () => void;
  /** Resolves when the client stops reading the agent's output. */
  readonly unheard: Promise<void>;
  /** Returns how many chunks of the agent's output the client has read. */
  readonly reads: () => number;
}

/** A queue of values, which can be waited for. */
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

/** The number of messages that the agent accepts before the test reads one. */
const inputMessages = 100;

interface Opening {
  readonly initialized?: object;
  readonly session?: Pick<Message, 'result' | 'error'>;
}

/** Opens a session with an agent whose messages the test writes itself. `opening` has its answers until then. */
export async function agentByHand(
  parts: Partial<AgentClient> = {}, { initialized = {}, session: answer = { result: { sessionId: 's' } } }: Opening = {},
): Promise<AgentByHand> {
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
  const opening = createAcpProtocol().open({ streams: { stdin, stdout }, workingDir: '/', authMethod: null, sessionId: null, client }, neverAborts);
  send({ id: (await heard()).id ?? 0, result: { protocolVersion: 1, ...initialized } });
  send({ id: (await heard()).id ?? 0, ...answer });
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
