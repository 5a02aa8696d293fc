import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import type { Reason } from '../../../domain/reason.ts';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { type Environment, passedEnvironment, resolveCommand, sandboxEnvironment } from './command.ts';
import { cutLog, type Layout, openLog } from './data-folder.ts';
import { claimFile, exitFile, type LaunchPlan, type LaunchRecord, readLastLaunch, refuseLaunch } from './launch-records.ts';
import { spawnLauncher } from './launcher.ts';
import type { PortReservations } from './port-reservations.ts';
import type { ProcessTable } from './process-table.ts';
import { reasons } from './status-reasons.ts';
import { errorCode, unavailable } from './system-errors.ts';

export interface LaunchOptions {
  readonly layout: Layout;
  readonly table: ProcessTable;
  readonly ports: PortReservations;
  readonly env: Environment;
  readonly logLimitBytes: number;
}

/** Errors of the system or of Node that are the command's fault. */
const unspawnable: Readonly<Record<string, Reason>> = {
  E2BIG: reasons.commandTooLong,
  ERR_INVALID_ARG_VALUE: reasons.commandHasNul,
};

/**
 * Runs a sandbox's command once more after its last launch, and at most once, whoever else tries. Returns when that is decided, with
 * the leader if it is a child of this process.
 */
export async function runLaunch(
  options: LaunchOptions, launch: SandboxLaunch, last: LaunchRecord | null, progress: Progress,
): Promise<ChildProcess | null> {
  const { layout, ports } = options;
  const { workspace, launches } = layout.sandbox(launch.id);
  const { workingDir, command, initialEnv } = launch.spec;
  const number = (last?.number ?? 0) + 1;
  const previous = last?.claim?.plan.ports ?? [];
  const refuse = async (refused: Reason): Promise<null> => {
    await refuseLaunch(launches, number, { mark: randomUUID(), ports: previous, workingDir, refused });
    return null;
  };

  await mkdir(workspace, { recursive: true });
  const path = initialEnv['PATH'] ?? passedEnvironment(options.env).PATH;
  const resolved = await resolveCommand(command, workspace, path);
  if (resolved.kind !== 'found') return refuse(resolved.reason);

  progress(reasons.startingCommand);
  const reserved: LaunchPlan['ports'][number][] = [];
  try {
    for (const { name, port } of launch.spec.ports) {
      const preferred = previous.find((one) => one.port === port)?.hostPort ?? null;
      reserved.push({ name, port, hostPort: await ports.reserve(launch.id, preferred) });
    }
    const plan = { mark: randomUUID(), ports: reserved, workingDir, path };
    return await tryLaunch(options, launch, number, plan, path, resolved.command);
  } catch (error) {
    const problem = unspawnable[errorCode(error) ?? ''];
    if (problem === undefined) throw error;
    return await refuse(problem);
  } finally {
    await releaseUnused(options, launch.id, [...previous, ...reserved]);
  }
}

async function tryLaunch(
  { layout, table, env, logLimitBytes }: LaunchOptions,
  launch: SandboxLaunch,
  number: number,
  plan: LaunchPlan,
  path: string,
  command: readonly string[],
): Promise<ChildProcess | null> {
  const { workspace, launches, log } = layout.sandbox(launch.id);
  await cutLog(log, logLimitBytes);
  const output = await openLog(log);
  const environment = sandboxEnvironment(env, launch, workspace, plan);
  try {
    const child = await spawnLauncher({
      claim: claimFile(launches, number),
      exit: exitFile(launches, number),
      table: table.kind,
      plan: JSON.stringify(plan),
      path,
      command,
      workspace,
      // The launcher finds its own tools on the server's path, and sets the command's path for it.
      env: { ...environment, ...table.carried(environment), PATH: passedEnvironment(env).PATH },
      output: output.fd,
    });
    const last = await readLastLaunch(launches);
    if (last === null || (last !== 'absent' && last.number < number)) throw unavailable('a launcher could not do its work');
    return last !== 'absent' && last.claim?.plan.mark === plan.mark ? child : null;
  } finally {
    await output.close();
  }
}

/** A port that was taken meanwhile is given up for another, and somebody else's launch may have won with its own ports. */
async function releaseUnused({ layout, ports }: LaunchOptions, id: string, reserved: LaunchPlan['ports']): Promise<void> {
  const last = await readLastLaunch(layout.sandbox(id).launches);
  const used = last === null || last === 'absent' ? [] : (last.claim?.plan.ports ?? []);
  const unused = reserved.map(({ hostPort }) => hostPort).filter((hostPort) => !used.some((one) => one.hostPort === hostPort));
  await ports.release(id, unused);
}
