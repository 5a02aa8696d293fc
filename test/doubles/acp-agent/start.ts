import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { RunningAgent } from '../../contracts/agent-harness.ts';
import type { AcpAgentOptions } from './options.ts';

const acpAgentProgram = fileURLToPath(new URL('main.ts', import.meta.url));

/** The command that runs the scripted agent. */
export function acpAgentCommand(options: AcpAgentOptions = {}): string[] {
  return [process.execPath, acpAgentProgram, JSON.stringify(options)];
}

export interface AgentProcess extends RunningAgent {
  readonly pid: number;
  /** Returns its standard error until now. */
  readonly stderr: () => string;
}

/** Runs an agent as a child process. */
export function startAgentProcess(command: readonly string[], options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {}): AgentProcess {
  const [program = '', ...args] = command;
  const child: ChildProcessByStdio<Writable, Readable, Readable> = spawn(program, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return {
    pid: child.pid ?? 0,
    streams: { stdin: Writable.toWeb(child.stdin), stdout: Readable.toWeb(child.stdout) as ReadableStream<Uint8Array> },
    gone: ended(child),
    kill: () => child.kill('SIGKILL'),
    stderr: () => stderr,
  };
}

/** Resolves when the process and its streams have ended, or when it could not be started. */
async function ended(child: ChildProcess): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once('close', () => resolve()).once('error', () => resolve());
  await promise;
}
