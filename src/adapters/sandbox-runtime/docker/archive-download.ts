import { type Agent, globalAgent } from 'node:http';
import { globalAgent as secureGlobalAgent } from 'node:https';
import type { OnReadOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import type Docker from 'dockerode';
import { LendingStream } from '../../shared/lending-stream.ts';
import type { Engine } from './engine.ts';

/** The engine's answer to a request for an archive. */
export interface ArchiveDownload {
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tar: LendingStream;
}

/**
 * Asks the engine for a tar of a path. All of it comes in one buffer, over a connection of its own: Node's HTTP client copies each part
 * into a new buffer, and the garbage of that takes more time than all else of a large download. The tar fails when the signal fires.
 */
export async function downloadArchive({ docker, call }: Engine, container: string, path: string, signal: AbortSignal): Promise<ArchiveDownload> {
  return await call(async (abortSignal) => {
    const connection = new Connection();
    await connection.open(docker, abortSignal);
    const query = new URLSearchParams({ path }).toString();
    const { status, headers, body } = await connection.get(`/containers/${encodeURIComponent(container)}/archive?${query}`);
    const tar = new LendingStream(body, (error) => connection.close(error));
    if (status !== 200) throw await errorOf(status, tar);
    const end = (): void => void tar.destroy(reasonOf(signal));
    signal.addEventListener('abort', end);
    // Whoever does not read any more gets no error either.
    tar.on('error', () => {}).once('close', () => signal.removeEventListener('abort', end));
    if (signal.aborted) end();
    return { headers, tar };
  }, { signal });
}

function reasonOf({ reason }: AbortSignal): Error {
  return reason instanceof Error ? reason : new Error('the download is not wanted any more', { cause: reason });
}

/** The error that dockerode makes of a response. */
async function errorOf(statusCode: number, body: LendingStream): Promise<Error> {
  const content = await text(body);
  let json: unknown = null;
  try {
    json = JSON.parse(content);
  } catch {
    // What is on the way to the engine answers otherwise.
  }
  return Object.assign(new Error(`(HTTP code ${statusCode}) ${content}`), { statusCode, json });
}

const bufferBytes = 256 << 10;
const maxHeadBytes = 64 << 10;
const separator = '\r\n\r\n';
const brokeOff = 'the engine broke off';

/** Returns what comes next, which stays as it is until the next call. Null at the end. */
type Read = () => Promise<Uint8Array | null>;

/** A connection to the engine, for one request. */
class Connection {
  readonly #buffer = Buffer.allocUnsafeSlow(bufferBytes);
  #socket: Duplex | null = null;
  #unread: Uint8Array | null = null;
  /** Why nothing more comes. */
  #end: Error | 'ended' | null = null;
  #changed = (): void => {};

  async open(docker: Docker, signal: AbortSignal): Promise<void> {
    const socket = await connect(docker, {
      buffer: this.#buffer,
      callback: (bytes) => {
        this.#came(this.#buffer.subarray(0, bytes));
        return false;
      },
    });
    this.#socket = socket;
    // Only a connection that does not know the buffer, such as one by `ssh`, has such events.
    socket.on('data', (chunk: Uint8Array) => {
      socket.pause();
      this.#came(chunk);
    });
    socket.on('end', () => this.#ended('ended'));
    socket.on('error', (error) => this.#ended(error));
    socket.on('close', () => this.#ended(new Error(brokeOff)));
    signal.addEventListener('abort', () => this.close(reasonOf(signal)));
    if (signal.aborted) this.close(reasonOf(signal));
  }

  close(error: Error | null): void {
    this.#ended(error ?? 'ended');
    this.#socket?.destroy();
  }

  async get(path: string): Promise<{ readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: Read }> {
    this.#socket?.write(`GET ${path} HTTP/1.1\r\nHost: docker\r\nConnection: close${separator}`);
    let head = '';
    while (!head.includes(separator)) {
      const chunk = await this.#read();
      if (chunk === null || head.length > maxHeadBytes) throw new Error(brokeOff);
      head += Buffer.from(chunk).toString('latin1');
    }
    const end = head.indexOf(separator);
    this.#unread = Buffer.from(head.slice(end + separator.length), 'latin1');
    const [statusLine = '', ...lines] = head.slice(0, end).split('\r\n');
    const fields = lines.map((line) => [line.split(':', 1)[0]?.toLowerCase() ?? '', line.slice(line.indexOf(':') + 1).trim()]);
    const headers: Readonly<Record<string, string>> = Object.fromEntries(fields);
    return { status: Number(statusLine.split(' ')[1]), headers, body: this.#body(headers) };
  }

  #body(headers: Readonly<Record<string, string>>): Read {
    const chunked = headers['transfer-encoding']?.toLowerCase() === 'chunked' ? new ChunkedBody(() => this.#read()) : null;
    return chunked === null ? () => this.#read() : () => chunked.read();
  }

  #came(chunk: Uint8Array): void {
    this.#unread = chunk;
    this.#changed();
  }

  #ended(end: Error | 'ended'): void {
    this.#end ??= end;
    this.#changed();
  }

  async #read(): Promise<Uint8Array | null> {
    while (this.#unread === null || this.#unread.length === 0) {
      if (this.#end !== null) {
        if (this.#end === 'ended') return null;
        throw this.#end;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#changed = resolve;
      this.#socket?.resume();
      await promise;
    }
    const chunk = this.#unread;
    this.#unread = null;
    return chunk;
  }
}

/** Opens a connection as the client does for its requests. */
async function connect({ modem }: Docker, onread: OnReadOpts): Promise<Duplex> {
  const { socketPath, host = '', port, protocol, agent, ca, cert, key }: Docker.DockerOptions & { readonly agent?: Agent } = modem;
  const address = socketPath === undefined ? { host: host.replaceAll(/[[\]]/g, ''), port: Number(port), ca, cert, key } : { path: socketPath };
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
  const options = { ...address, onread };
  const connecting = (agent ?? (protocol === 'https' ? secureGlobalAgent : globalAgent)).createConnection(options, (error, socket) => {
    // Node's own agents give nothing to this function.
    if (error instanceof Error) reject(error);
    else resolve(socket);
  });
  if (connecting) resolve(connecting);
  return await promise;
}

const longestLine = 1_024;

/** The content of a body that comes in parts, each after a line with its length. Source: RFC 9112, 7.1. */
class ChunkedBody {
  readonly #read: Read;
  #line = '';
  #left = 0;
  #isWhole = false;

  constructor(read: Read) {
    this.#read = read;
  }

  /** Moves the content together within the chunk. */
  async read(): Promise<Uint8Array | null> {
    while (!this.#isWhole) {
      const chunk = await this.#read();
      if (chunk === null) throw new Error(brokeOff);
      let length = 0;
      for (let at = 0; at < chunk.length && !this.#isWhole; ) {
        const part = chunk.subarray(at, at + this.#left);
        chunk.set(part, length);
        length += part.length;
        at += part.length;
        this.#left -= part.length;
        if (this.#left === 0 && at < chunk.length) this.#readLine(chunk[at++] ?? 0);
      }
      if (length > 0) return chunk.subarray(0, length);
    }
    return null;
  }

  #readLine(byte: number): void {
    this.#line += String.fromCharCode(byte);
    const size = /^(?:\r\n)?([0-9a-f]+)(?:;.*)?\r\n$/i.exec(this.#line)?.[1];
    if (size === undefined) {
      if (this.#line.length > longestLine) throw new Error(brokeOff);
      return;
    }
    this.#line = '';
    this.#left = Number.parseInt(size, 16);
    this.#isWhole = this.#left === 0;
  }
}
