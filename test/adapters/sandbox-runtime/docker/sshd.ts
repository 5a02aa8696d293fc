import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { descendantsOf, kill } from './processes.ts';
import { unlessRequired } from './required.ts';

const run = promisify(execFile);

/** A real SSH server on this machine's loopback, and the real `ssh` set up for it alone: nothing of the user's own is read or changed. */
export interface Sshd {
  readonly port: number;
  /** A folder with that `ssh`, to be the first of PATH. */
  readonly bin: string;
  /** Has the client know this as the server's key; null: none. */
  know(hostKey: 'its own' | 'another' | null): Promise<void>;
  /** Has the server take the client's key, or refuse it. */
  admit(client: boolean): Promise<void>;
  /** Ends it with all of its connections. */
  kill(): Promise<void>;
  /** Again, at the same port. */
  start(): Promise<void>;
  close(): Promise<void>;
}

// Newer releases start it by its full path only.
const find = async (program: string): Promise<string> =>
  (await run('sh', ['-c', `PATH="$PATH:/usr/sbin" && command -v ${program}`])).stdout.trim();

/** Why there can be none here; null where there can. */
export async function whyNoSshd(): Promise<string | null> {
  if (process.getuid?.() !== 0) return unlessRequired('only root can run an SSH server that lets root in');
  const found = await Promise.allSettled(['sshd', 'ssh', 'ssh-keygen', 'docker'].map(find));
  return unlessRequired(
    found.every(({ status }) => status === 'fulfilled') ? null : 'this machine lacks an SSH server or client, or the client of Docker',
  );
}

export async function createSshd(): Promise<Sshd> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-sshd-'));
  const at = (name: string): string => join(folder, name);
  for (const name of ['host', 'user', 'other']) await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(name)]);
  const [program, client] = await Promise.all(['sshd', 'ssh'].map(find));
  // Where it shuts away the part of it that speaks with strangers.
  await mkdir('/run/sshd', { recursive: true, mode: 0o755 });
  await writeFile(at('sshd_config'), serverConfig(at));
  // Newer releases turn away for a while whoever was refused a few times.
  const lenient = ['-o', 'PerSourcePenalties=no'];
  const options = await run(program!, ['-t', '-f', at('sshd_config'), ...lenient]).then(() => lenient, () => []);
  await writeFile(at('ssh_config'), clientConfig(at));
  await mkdir(at('bin'));
  await writeFile(at('bin/ssh'), `#!/bin/sh\nexec ${client} -F ${at('ssh_config')} "$@"\n`);
  await chmod(at('bin/ssh'), 0o755);
  let daemon: ChildProcess | undefined;

  async function startAt(port: number): Promise<void> {
    const started = spawn(program!, ['-D', '-e', '-f', at('sshd_config'), '-p', String(port), ...options], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const said: string[] = [];
    const listens = Promise.withResolvers<void>();
    createInterface(started.stderr).on('line', (line) => {
      said.push(line);
      if (line.startsWith('Server listening')) listens.resolve();
    });
    started.on('error', listens.reject);
    started.on('close', () => listens.reject(new Error(`sshd has ended: ${said.join('\n')}`)));
    await listens.promise;
    daemon = started;
  }

  /** Below the ports that the system gives to whoever asks for none in particular, so that this one stays free for a restart. */
  async function startAnywhere(tries: number): Promise<number> {
    const port = randomInt(20_000, 32_000);
    try {
      await startAt(port);
      return port;
    } catch (error) {
      if (tries > 1 && /already in use/i.test(String(error))) return startAnywhere(tries - 1);
      throw error;
    }
  }

  async function killAll(): Promise<void> {
    const killed = daemon;
    daemon = undefined;
    if (killed?.pid === undefined || killed.exitCode !== null) return;
    // So it begins no more connections.
    killed.kill('SIGSTOP');
    const ended = once(killed, 'exit');
    await kill([killed.pid, ...(await descendantsOf(killed.pid)).map(({ pid }) => pid)]);
    await ended;
  }

  const port = await startAnywhere(20);
  const sshd: Sshd = {
    port,
    bin: at('bin'),
    async know(hostKey) {
      const key = hostKey === null ? null : await readFile(at(hostKey === 'another' ? 'other.pub' : 'host.pub'), 'utf8');
      await writeFile(at('known_hosts'), key === null ? '' : `[127.0.0.1]:${port} ${key}`);
    },
    admit: async (one) => writeFile(at('authorized_keys'), await readFile(at(one ? 'user.pub' : 'other.pub'))),
    kill: killAll,
    start: () => startAt(port),
    async close() {
      await killAll();
      await rm(folder, { recursive: true, force: true });
    },
  };
  await sshd.know('its own');
  await sshd.admit(true);
  return sshd;
}

const serverConfig = (at: (name: string) => string): string => `ListenAddress 127.0.0.1
HostKey ${at('host')}
AuthorizedKeysFile ${at('authorized_keys')}
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitUserRC no
SetEnv PATH=${process.env['PATH']}
`;

const clientConfig = (at: (name: string) => string): string => `IdentityFile ${at('user')}
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile ${at('known_hosts')}
GlobalKnownHostsFile /dev/null
`;
