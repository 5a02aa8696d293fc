import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readlink, symlink, unlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { ignoring } from '../../shared/system-errors.ts';

const attempts = 200;
/**
 * Below the ports that the system gives to outgoing connections and to listeners on port 0 (32768 and up on Linux, 49152 elsewhere),
 * which could get one before the sandbox listens on it, or while the sandbox is stopped.
 */
const range = { first: 20_000, end: 32_768 };

/**
 * Ports of this host's loopback address that are reserved for sandboxes. A reservation is a link on disk, which is made
 * atomically, so that no two sandboxes get one port, whoever starts them. A stopped sandbox keeps its own.
 */
export class PortReservations {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Reserves a free port; the preferred one if it is free and nobody else's. */
  async reserve(owner: string, preferred: number | null): Promise<number> {
    if (preferred !== null && (await isFree(preferred)) && (await this.#take(owner, preferred))) return preferred;
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const port = randomInt(range.first, range.end);
      if ((await this.#ownerOf(port)) === null && (await isFree(port)) && (await this.#take(owner, port))) return port;
    }
    throw new Error('no free port was found');
  }

  /** Idempotent; leaves another's reservation alone. */
  async release(owner: string, ports: readonly number[]): Promise<void> {
    for (const port of ports) {
      if ((await this.#ownerOf(port)) === owner) await unlink(this.#file(port)).catch(() => {});
    }
  }

  /** Releases all of the owners who need them no more. */
  async releaseAll(isOver: (owner: string) => Promise<boolean>): Promise<void> {
    for (const port of (await readdir(this.#folder)).map(Number)) {
      const owner = await this.#ownerOf(port);
      if (owner !== null && (await isOver(owner))) await this.release(owner, [port]);
    }
  }

  async #take(owner: string, port: number): Promise<boolean> {
    const taken = await symlink(owner, this.#file(port)).catch(ignoring('EEXIST'));
    return taken !== null || (await this.#ownerOf(port)) === owner;
  }

  #ownerOf(port: number): Promise<string | null> {
    return readlink(this.#file(port)).catch(() => null);
  }

  #file(port: number): string {
    return join(this.#folder, String(port));
  }
}

/** Whether nobody listens on the port. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen({ host: '127.0.0.1', port, exclusive: true });
  const listens = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  if (listens) await server[Symbol.asyncDispose]();
  return listens;
}
