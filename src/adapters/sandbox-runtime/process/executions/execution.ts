import { constants } from 'node:os';
import type { Execution } from '../../../../ports/sandbox-runtime.ts';
import { inputStream, outputStream } from '../../web-streams.ts';
import { withFailures } from '../file-errors.ts';
import type { Lineage } from '../members.ts';
import type { ProcessTable } from '../process-table.ts';
import { killAll } from '../signals.ts';
import type { Child } from './spawn-command.ts';

/** The variable by which the processes of an execution are known, wherever they went. */
export const executionVariable = 'SKEP_EXECUTION_MARK';

export interface BegunCommand {
  readonly child: Child;
  readonly mark: string;
  /** Where it was begun, as a path of the host. */
  readonly cwd: string;
}

/** An execution of a child of this process. */
export async function createExecution(table: ProcessTable, { child, mark, cwd }: BegunCommand): Promise<Execution> {
  // At once: what a child wrote and nobody listens to is lost when it ends.
  const streams = { stdin: inputStream(child.stdin), stdout: outputStream(child.stdout), stderr: outputStream(child.stderr) };
  const exited = new Promise<number>((resolve) => {
    const tell = (code: number | null, signal: NodeJS.Signals | null): void => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    if (child.exitCode !== null || child.signalCode !== null) tell(child.exitCode, child.signalCode);
    else child.once('exit', tell);
  });
  const lineage = await lineageOf(table, child.pid ?? 0, mark);
  let killing: Promise<void> | undefined;
  const kill = async (): Promise<void> => {
    await withFailures(() => killAll(table, lineage));
    await exited;
  };
  return {
    ...streams,
    workingDir: cwd,
    exited,
    kill() {
      killing ??= kill().catch((error: unknown) => {
        killing = undefined;
        throw error;
      });
      return killing;
    },
  };
}

/** A command that has ended already is known by nobody's number: what it left behind is found by its mark, and is no older than this process. */
async function lineageOf(table: ProcessTable, pid: number, mark: string): Promise<Lineage> {
  const found = (await table.find(pid)) ?? (await table.find(process.pid));
  const leader = found === null ? null : { pid, start: found.start, boot: await table.bootId() };
  return { leader, plan: { mark }, variable: executionVariable };
}
