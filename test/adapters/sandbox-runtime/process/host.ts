import { mkdtemp, readFile, readdir, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createProcessRuntime, type ProcessRuntimeOptions } from '../../../../src/adapters/sandbox-runtime/process/index.ts';
import type { SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';

/** A folder of sandboxes, and what can be seen of it without a runtime. */
export interface Host {
  readonly root: string;
  readonly open: (options?: Partial<ProcessRuntimeOptions>) => SandboxRuntime;
  readonly readFile: (id: string, name: string) => Promise<string | null>;
  /** The pid of the sandbox's last leader. */
  readonly leader: (id: string) => Promise<number>;
  /** The living processes of a sandbox, or of all, by what their environment says. */
  readonly processes: (id?: string) => Promise<readonly number[]>;
  /** Kills all processes of a sandbox. */
  readonly killAll: (id: string) => Promise<void>;
  /** Ends a sandbox as a restart of the host does: its last leader is of another boot, and no process is left. */
  readonly endAsByRestart: (id: string) => Promise<void>;
  readonly leftovers: (id: string) => Promise<readonly string[]>;
  readonly close: () => Promise<void>;
}

/** Of no interest to a test, and so short that nobody waits for it. */
const quick = { stopGraceMs: 400, pollMs: 20 };

export async function createHost(defaults: Partial<ProcessRuntimeOptions> = {}): Promise<Host> {
  const root = await mkdtemp(join(tmpdir(), 'skep-process-'));
  const opened: SandboxRuntime[] = [];
  const open = (options: Partial<ProcessRuntimeOptions> = {}): SandboxRuntime => {
    const runtime = createProcessRuntime({ root, ...quick, ...defaults, ...options });
    opened.push(runtime);
    return runtime;
  };
  const processes = async (id?: string): Promise<readonly number[]> => {
    const found: number[] = [];
    for (const name of await readdir('/proc')) {
      if (!/^\d+$/.test(name)) continue;
      const environ = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '');
      const workspace = `\0SKEP_WORKSPACE=${root}/${id === undefined ? '' : `${id}/`}`;
      if (`\0${environ}`.includes(workspace) && (await isAlive(Number(name)))) found.push(Number(name));
    }
    return found;
  };
  const lastClaim = async (id: string): Promise<string> => {
    const folder = join(root, id, 'launches');
    const numbers = (await readdir(folder)).flatMap((name) => /^(\d+)\.claim$/.exec(name)?.[1] ?? []).map(Number);
    return join(folder, `${Math.max(...numbers)}.claim`);
  };
  const killAll = async (id: string): Promise<void> => {
    for (let left = await processes(id); left.length > 0; left = await processes(id)) {
      for (const pid of left) kill(pid);
    }
  };
  return {
    root,
    open,
    readFile: (id, name) => readFile(join(root, id, 'workspace', name), 'utf8').catch(() => null),
    leader: async (id) => Number.parseInt(await readFile(await lastClaim(id), 'utf8'), 10),
    processes,
    killAll,
    async endAsByRestart(id) {
      const claim = await lastClaim(id);
      const [pid, start, , ...rest] = (await readFile(claim, 'utf8')).split('\n');
      await writeFile(`${claim}.new`, [pid, start, 'another-boot', ...rest].join('\n'));
      await rename(`${claim}.new`, claim);
      await killAll(id);
    },
    async leftovers(id) {
      const files = await readdir(root, { recursive: true });
      const ports = await readdir(join(root, '.ports')).catch(() => []);
      const owners = await Promise.all(ports.map((port) => readlink(join(root, '.ports', port))));
      return [
        ...files.filter((file) => file.includes(id)),
        ...(await processes(id)).map((pid) => `process ${pid}`),
        ...ports.filter((_, index) => owners[index] === id).map((port) => `port ${port}`),
      ];
    },
    async close() {
      const cleaner = open();
      for (const { id } of await cleaner.list()) await cleaner.remove(id);
      for (const runtime of opened) await runtime.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Does the process live? A zombie does not. */
export async function isAlive(pid: number): Promise<boolean> {
  const state = await stateOf(pid);
  return state !== null && state !== 'Z' && state !== 'X';
}

/** The state letter of a process; null when there is none. */
export async function stateOf(pid: number): Promise<string | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => null);
  return stat?.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) ?? null;
}

/** Kills a process, or a group given as a negative number, that may have ended already. */
export function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/** The states of a process that is held: D is a parent that waits, inside the kernel, for a child that is. */
export const heldState = /^[TDZ]$/;
