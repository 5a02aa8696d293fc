import { readdir, readlink, symlink, unlink } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import { errorCode } from './system-errors.ts';

const host = '127.0.0.1';
const attempts = 200;

/**
 * Ports of this host's loopback address that are reserved for sandboxes. A reservation is a link on disk, which is made
 * atomically, so that no two sandboxes get one port, whoever starts them. A stopped sandbox keeps its own.
 */
export interface PortReservations {
  /** Reserves a free port; the preferred one if it is free and nobody else's. */
  reserve(owner: string, preferred: number | null): Promise<number>;
  /** Idempotent; leaves another's reservation alone. */
  release(owner: string, ports: readonly number[]): Promise<void>;
  /** Releases all of the owners who need them no more. */
  releaseAll(isOver: (owner: string) => Promise<boolean>): Promise<void>;
}

export function createPortReservations(folder: string): PortReservations {
  const file = (port: number): string => join(folder, String(port));
  const ownerOf = (port: number): Promise<string | null> => readlink(file(port)).catch(() => null);
  const take = async (owner: string, port: number): Promise<boolean> => {
    try {
      await symlink(owner, file(port));
      return true;
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
      return (await ownerOf(port)) === owner;
    }
  };
  const release = async (owner: string, ports: readonly number[]): Promise<void> => {
    for (const port of ports) {
      if ((await ownerOf(port)) === owner) await unlink(file(port)).catch(() => {});
    }
  };
  return {
    async reserve(owner, preferred) {
      if (preferred !== null) {
        await using held = await hold(preferred).catch(() => null);
        if (held !== null && (await take(owner, preferred))) return preferred;
      }
      for (let attempt = 0; attempt < attempts; attempt += 1) {
        // The port is held until it is reserved, so that concurrent searches get different ones.
        await using held = await hold(0);
        if ((await ownerOf(held.port)) === null && (await take(owner, held.port))) return held.port;
      }
      throw new Error('no free port was found');
    },
    release,
    async releaseAll(isOver) {
      const reserved = (await readdir(folder)).map(Number);
      const owners = await Promise.all(reserved.map(ownerOf));
      for (const [index, port] of reserved.entries()) {
        const owner = owners[index] ?? null;
        if (owner !== null && (await isOver(owner))) await release(owner, [port]);
      }
    },
  };
}

interface HeldPort extends AsyncDisposable {
  readonly port: number;
}

/** Listens on the port, on any that is free for 0, until it is disposed of. */
async function hold(port: number): Promise<HeldPort> {
  const server: Server = createServer();
  server.listen({ host, port, exclusive: true });
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return {
    port: address.port,
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, 'close');
    },
  };
}
