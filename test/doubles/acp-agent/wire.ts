import { once } from 'node:events';
import { createInterface } from 'node:readline';

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: unknown;
}

export interface Request {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly answer: (answer: { readonly result: unknown } | { readonly error: unknown }) => Promise<void>;
}

const asked = new Map<number, (message: Message) => void>();
const input = createInterface({ input: process.stdin });
let nextId = 1;

/** Writes, and waits until somebody reads. */
export async function write(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}

/** Waits until all output has left this process. */
export async function flushed(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.stdout.write('', () => resolve());
  });
}

export async function send(message: Readonly<Record<string, unknown>>): Promise<void> {
  await write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

/** Sends a request to the client. Returns the whole response, also an error. */
export async function ask(method: string, params: unknown): Promise<{ readonly result?: unknown; readonly error?: unknown }> {
  const id = nextId++;
  const { promise, resolve } = Promise.withResolvers<Message>();
  asked.set(id, resolve);
  await send({ id, method, params });
  const { result, error } = await promise;
  return error === undefined ? { result } : { error };
}

/** Calls back for each request and notification of the client, and ends the process when its input ends. */
export function listen(onRequest: (request: Request) => void, onNotification: (method: string) => void): void {
  input.on('line', (line) => {
    const message = JSON.parse(line) as Message;
    const { id, method, params = {} } = message;
    if (method === undefined) asked.get(Number(id))?.(message);
    else if (id === undefined) onNotification(method);
    else onRequest({ method, params, answer: (answer) => send({ id, ...answer }) });
  });
  input.on('close', () => process.exit(0));
}

/** Stops reading and keeps running. */
export function stopListening(): void {
  input.pause();
  setInterval(() => {}, 60_000);
}
