import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { send } from './wire.ts';

export interface Session {
  readonly id: string;
  readonly cwd: string;
  /** Sends an update to the client, and stores it. */
  readonly update: (update: Readonly<Record<string, unknown>>) => Promise<void>;
  readonly remember: (update: Readonly<Record<string, unknown>>) => void;
}

/** The sessions of an agent. Each is a file with one update per line. */
export class Sessions {
  readonly #folder: string | null;

  constructor(folder: string | null) {
    this.#folder = folder;
    if (folder !== null) mkdirSync(folder, { recursive: true });
  }

  create(cwd: string): Session {
    const id = `session-${randomUUID()}`;
    if (this.#folder !== null) writeFileSync(join(this.#folder, id), '');
    return this.#session(id, cwd);
  }

  /** Returns the session. Null if it is not known. */
  find(id: string, cwd: string): Session | null {
    if (this.#folder === null || !/^session-[\w-]+$/u.test(id) || !existsSync(join(this.#folder, id))) return null;
    return this.#session(id, cwd);
  }

  /** Returns the stored updates of a session that exists. */
  history({ id }: Session): Readonly<Record<string, unknown>>[] {
    if (this.#folder === null) return [];
    const lines = readFileSync(join(this.#folder, id), 'utf8').split('\n').filter(Boolean);
    return lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  }

  #session(id: string, cwd: string): Session {
    const remember = (update: Readonly<Record<string, unknown>>): void => {
      if (this.#folder !== null) appendFileSync(join(this.#folder, id), `${JSON.stringify(update)}\n`);
    };
    return {
      id,
      cwd,
      remember,
      async update(update) {
        await send({ method: 'session/update', params: { sessionId: id, update } });
      },
    };
  }
}
