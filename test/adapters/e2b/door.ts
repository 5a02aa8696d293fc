import { e2b } from '../../../src/adapters/e2b/index.ts';
import type { HttpServerOptions } from '../../../src/adapters/http/index.ts';
import { type Client, createClient, object } from '../../support/client.ts';
import { commands } from '../http/executions-support.ts';
import { startWorld, type World } from '../http/world.ts';

export const connectJson = 'application/connect+json';

export interface Door {
  readonly world: World;
  readonly id: string;
  /** The headers of a client's requests to the sandbox. */
  readonly headers: Readonly<Record<string, string>>;
  readonly as: (key: string | null) => Client;
}

/** Starts a server with the API for E2B clients, and a sandbox. */
export async function openDoor(server: HttpServerOptions = {}): Promise<Door> {
  const world = await startWorld({ command: commands, server: { mounts: [e2b], ...server } });
  const as = (key: string | null): Client => (method, path, body, headers = {}) =>
    createClient(world.url, null)(method, path, body, { ...(key !== null && { 'X-API-Key': key }), ...headers });
  const made = object(await as(world.keys.ann)('POST', '/e2b/v2/sandboxes', { templateID: 'base', timeout: 60 }));
  const id = String(made['sandboxID']);
  return { world, id, as, headers: { 'E2b-Sandbox-Id': id, 'X-Access-Token': String(made['envdAccessToken']) } };
}

/** Returns the body of a request with one message. */
export function wrapped(text: string, flags = 0): Buffer {
  const content = Buffer.from(text);
  const header = Buffer.alloc(5);
  header.writeUInt8(flags);
  header.writeUInt32BE(content.length, 1);
  return Buffer.concat([header, content]);
}

/** Sends the bytes to a streaming method, and returns the messages of its response. */
export async function stream({ world, headers }: Pick<Door, 'world' | 'headers'>, method: string, body: Buffer): Promise<Record<string, unknown>[]> {
  const response = await fetch(`${world.url}/e2b/process.Process/${method}`, { method: 'POST', headers: { ...headers, 'Content-Type': connectJson }, body: new Uint8Array(body) });
  const bytes = Buffer.from(await response.arrayBuffer());
  const messages: Record<string, unknown>[] = [];
  for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1)) {
    messages.push(JSON.parse(bytes.subarray(at + 5, at + 5 + bytes.readUInt32BE(at + 1)).toString()) as Record<string, unknown>);
  }
  return messages;
}

export const codeOf = (messages: readonly Record<string, unknown>[]): unknown => (messages.at(-1)?.['error'] as { code?: string } | undefined)?.code;
