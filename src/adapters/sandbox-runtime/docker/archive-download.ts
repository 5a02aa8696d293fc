import { type Agent, globalAgent } from 'node:http';
import { globalAgent as secureGlobalAgent } from 'node:https';
import type { OnReadOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import type Docker from 'dockerode';
import { LendingStream } from '../../shared/lending-stream.ts';
import type { Engine } from './engine.ts';

/** The engine's answer to a request for an archive. */
interface ArchiveDownload {
  /** The keys are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tar: LendingStream;
}

/**
 * Requests a tar of a path from the engine. One buffer receives all data, over a separate connection: Node's HTTP client copies each chunk
 * into a new buffer, and their garbage collection takes most of the time of a large download. The tar fails if the signal fires.
 */
export async function downloadArchive(
  { docker, call }: Engine, container: string, path: string, signal: AbortSignal,
): Promise<ArchiveDownload> {
  return await call(async (abortSignal) => {
    const connection = new Connection();
    await connection.open(docker, abortSignal);
    const query = new URLSearchParams({ path }).toString();
    const { status, headers, body } = await connection.get(`/containers/${encodeURIComponent(container)}/archive?${query}`);
    const tar = new LendingStream(body, (error) => connection.close(error));
    if (status !== 200) throw await errorOf(status, tar);
    const end = (): void => void tar.destroy(reasonOf(signal));
    signal.addEventListener('abort', end);
    // A stream without a reader must not throw an unhandled error.
    tar.on('error', () => {}).once('close', () => signal.removeEventListener('abort', end));
    if (signal.aborted) end();
    return { headers, tar };
  }, { signal });
}

function reasonOf({ reason }: AbortSignal): Error {
  return reason instanceof Error ? reason : new Error('the download is not wanted any more', { cause: reason });
}

/** Builds the same error as dockerode does for a response. */
async function errorOf(statusCode: number, body: LendingStream): Promise<Error> {
  const content = await text(body);
  let json: unknown = null;
  try {
    json = JSON.parse(content);
  } catch {
    // The answer is not JSON, for example if it is from a proxy.
  }
  return Object.assign(new Error(`(HTTP code ${statusCode}) ${content}`), { statusCode, json });
}

const bufferBytes = 256 << 10;
const maxHeadBytes = 64 << 10;
const separator = '\r\n\r\n';
const brokeOff = 'the engine broke off';

/** Returns the next bytes, which are valid until the next call. Null at the end. */
type Read = () => Promise<Uint8Array | null>;

/** A connection to the engine, for one request. */
class Connection {
  readonly #buffer = Buffer.allocUnsafeSlow(bufferBytes);
  #socket: Duplex | null = null;
  #unread: Uint8Array | null = null;
  /** The reason why no more data comes. */
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
    // Only a connection that ignores the buffer, such as one over `ssh`, emits these events.
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
    this.#unread = null;
    this.#ended(error ?? new Error(brokeOff));
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
    const read: Read = () => this.#read();
    if (headers['transfer-encoding']?.toLowerCase() === 'chunked') {
      const body = new ChunkedBody(read);
      return () => body.read();
    }
    let left = Number(headers['content-length'] ?? Infinity);
    return async () => {
      if (left === 0) return null;
      const chunk = await read();
      if (chunk === null && left !== Infinity) throw new Error(brokeOff);
      left -= chunk?.length ?? 0;
      return chunk;
    };
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

/** Opens a connection as the client does for its own requests. */
async function connect({ modem }: Docker, onread: OnReadOpts): Promise<Duplex> {
  const { socketPath, host = '', port, protocol, agent, ca, cert, key }: Docker.DockerOptions & { readonly agent?: Agent } = modem;
  const remote = { host: host.replaceAll(/[[\]]/g, ''), port: Number(port), ca, cert, key };
  const address = socketPath === undefined ? remote : { path: socketPath };
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
  const options = { ...address, onread };
  const connecting = (agent ?? (protocol === 'https' ? secureGlobalAgent : globalAgent)).createConnection(options, (error, socket) => {
    // Node's own agents pass nothing to this callback.
    if (error instanceof Error) reject(error);
    else resolve(socket);
  });
  if (connecting) resolve(connecting);
  return await promise;
}

const longestLine = 1_024;

/** Decodes the chunked transfer coding. Source: RFC 9112, 7.1. */
class ChunkedBody {
  readonly #read: Read;
  #line = '';
  #left = 0;
  #isWhole = false;

  constructor(read: Read) {
    this.#read = read;
  }

  /** Moves the content to the start of the chunk, in place. */
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
