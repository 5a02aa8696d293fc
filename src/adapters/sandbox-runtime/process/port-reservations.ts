import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readlink, symlink, unlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { ignoring } from '../../shared/system-errors.ts';

const attempts = 200;
/**
 * Below the ephemeral ports (from 32768 on Linux, from 49152 elsewhere). The system could give one of those to another program before the
 * sandbox listens on it, or while the sandbox is stopped.
 */
const range = { first: 20_000, end: 32_768 };

/**
 * Ports of this host's loopback address, reserved for sandboxes. A reservation is a link on the disk. Its creation is atomic, so two
 * processes never reserve the same port. A stopped sandbox keeps its ports.
 */
export class PortReservations {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Reserves a free port. Prefers the given one, if it is free and not reserved by another sandbox. */
  async reserve(owner: string, preferred: number | null): Promise<number> {
    if (preferred !== null && (await isFree(preferred)) && (await this.#take(owner, preferred))) return preferred;
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const port = randomInt(range.first, range.end);
      if ((await this.#ownerOf(port)) === null && (await isFree(port)) && (await this.#take(owner, port))) return port;
    }
    throw new Error('no free port was found');
  }

  /** Releases the reservations for which `isUnused` returns true. */
  async release(isUnused: (owner: string, port: number) => boolean | Promise<boolean>): Promise<void> {
    for (const port of (await readdir(this.#folder)).map(Number)) {
      const owner = await this.#ownerOf(port);
      if (owner !== null && (await isUnused(owner, port))) await unlink(this.#file(port)).catch(() => {});
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

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen({ host: '127.0.0.1', port, exclusive: true });
  const listens = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  if (listens) await server[Symbol.asyncDispose]();
  return listens;
}
