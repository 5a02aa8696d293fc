import type { ChildProcess } from 'node:child_process';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { discardSandbox, endDiscarded, makeSandbox, removeDiscarded } from './data-folder.ts';
import { noteExit, noteFreezeOver, noteFreezing, noteGone, readExit } from './launch-records.ts';
import { type LaunchOptions, runLaunch } from './launches.ts';
import type { Reader } from './observed-sandbox.ts';
import { endAll, findLeader, holdAll, killAll, releaseAll } from './process-groups.ts';

export interface ActionOptions extends LaunchOptions {
  readonly reader: Reader;
  readonly stopGraceMs: number;
  /** Told when this process is the parent of a sandbox's leader. */
  readonly own: (id: string, leader: ChildProcess) => void;
}

/** What a shell says of a command that SIGKILL ended. */
const killedStatus = 128 + 9;

/**
 * The moves of one sandbox. Each looks at what is, does what is left to do, and can be made again after it was
 * interrupted anywhere. Of two for one sandbox, in this process the second waits for the first.
 */
export interface Actions {
  start(launch: SandboxLaunch, progress: Progress): Promise<void>;
  freeze(id: string): Promise<void>;
  /** `hurried` cuts the grace short once it says so. */
  stop(id: string, hurried: () => boolean): Promise<void>;
  resume(launch: SandboxLaunch): Promise<void>;
  remove(id: string): Promise<void>;
  /** Ends what a command that ended by itself left behind. */
  clearUp(id: string): Promise<void>;
}

export function createActions(options: ActionOptions): Actions {
  const { layout, table, ports, reader, stopGraceMs, own } = options;
  const launchesOf = (id: string): string => layout.sandbox(id).launches;
  const run = async (launch: SandboxLaunch, progress: Progress): Promise<void> => {
    const { record } = await reader.read(launch.id);
    if (record === 'absent') return;
    const leader = await runLaunch(options, launch, record, progress);
    if (leader !== null) own(launch.id, leader);
  };
  const clearUp = async (id: string): Promise<void> => {
    const { live } = await reader.read(id);
    if (live === null || (await readExit(launchesOf(id), live.number)) === null) return;
    // The leader notes the exit, then ends the group and itself.
    if ((await findLeader(table, live.claim.leader)) !== null) return;
    await killAll(table, live.claim);
    await noteGone(launchesOf(id), live.number);
  };
  return {
    async start(launch, progress) {
      await makeSandbox(layout, launch.id);
      if ((await reader.read(launch.id)).fact.state === 'created') await run(launch, progress);
    },
    async freeze(id) {
      const { live, fact } = await reader.read(id);
      if (live === null || fact.state === 'frozen') return;
      await noteFreezing(launchesOf(id), live.number);
      await holdAll(table, live.claim);
      await noteFreezeOver(launchesOf(id), live.number);
    },
    async stop(id, hurried) {
      const { live } = await reader.read(id);
      if (live === null) return;
      const killed = await endAll(table, live.claim, stopGraceMs, hurried);
      if (killed) await noteExit(launchesOf(id), live.number, killedStatus);
      await noteGone(launchesOf(id), live.number);
    },
    async resume(launch) {
      await clearUp(launch.id);
      const { live, fact } = await reader.read(launch.id);
      if (fact.state === 'stopped') await run(launch, () => {});
      if (live === null || (fact.state !== 'frozen' && !live.freezing)) return;
      await releaseAll(table, live.claim);
      await noteFreezeOver(launchesOf(launch.id), live.number);
    },
    async remove(id) {
      await discardSandbox(layout, id);
      const folders = await endDiscarded(layout, table, id);
      await ports.releaseAll(async (owner) => owner === id);
      await removeDiscarded(folders);
    },
    clearUp,
  };
}
