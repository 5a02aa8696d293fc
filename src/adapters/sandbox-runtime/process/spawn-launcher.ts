import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Socket } from 'node:net';
import { Failure } from '../../../domain/failure.ts';
import { launcherArguments, type LauncherArguments } from './launcher.ts';

/** How long a launcher may take to decide its launch. */
const limitMs = 10_000;

export interface LauncherContext extends LauncherArguments {
  readonly workspace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Descriptor that the standard output and error go to. */
  readonly output: number;
}

/**
 * Starts a launcher in a session and group of its own, which outlive this process. Answers when it has decided whether
 * it runs the command. Rejects with a system error when it can't be started.
 */
export async function spawnLauncher(context: LauncherContext): Promise<ChildProcess> {
  const child = spawn('/bin/sh', launcherArguments(context), {
    cwd: context.workspace,
    env: context.env,
    detached: true,
    stdio: ['ignore', context.output, context.output, 'pipe'],
  });
  await once(child, 'spawn');
  const decided = child.stdio[3];
  if (!(decided instanceof Socket)) throw new TypeError('the launcher has no descriptor 3');
  try {
    decided.resume();
    await once(decided, 'close', { signal: AbortSignal.timeout(limitMs) });
  } catch (error) {
    throw new Failure('runtime_timeout', { runtime: 'process', limitMs }, { cause: error });
  } finally {
    decided.destroy();
    child.unref();
  }
  return child;
}
