import type { ChildProcess } from 'node:child_process';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { discardSandbox, endDiscarded, makeSandbox, removeDiscarded } from './data-folder.ts';
import { noteExit, noteFreezeOver, noteFreezing, noteGone, readExit } from './launch-records.ts';
import { type LaunchOptions, runLaunch } from './launches.ts';
import type { Observer } from './observed-sandbox.ts';
import { endAll, findLeader, holdAll, killAll, releaseAll } from './process-groups.ts';

export interface SandboxesOptions extends LaunchOptions {
  readonly observer: Observer;
  readonly stopGraceMs: number;
  /** Called if this process is the parent of a sandbox's leader. */
  readonly onOwnLeader: (id: string, leader: ChildProcess) => void;
}

/** What a shell reports of a command that SIGKILL ended. */
const killedStatus = 128 + 9;

/**
 * Starts, freezes, stops, resumes and removes sandboxes, one step at a time for one sandbox. Each step reads the state, does what is
 * left to do, and can be repeated after an interruption at any point.
 */
export class Sandboxes {
  readonly #options: SandboxesOptions;

  constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  async start(launch: SandboxLaunch, progress: Progress): Promise<void> {
    const { layout, observer } = this.#options;
    await makeSandbox(layout, launch.id);
    if ((await observer.observe(launch.id)).observed.state === 'created') await this.#run(launch, progress);
  }

  async freeze(id: string): Promise<void> {
    const { live, observed } = await this.#options.observer.observe(id);
    if (live === null || observed.state === 'frozen') return;
    await noteFreezing(this.#launches(id), live.number);
    await holdAll(this.#options.table, live.claim);
    await noteFreezeOver(this.#launches(id), live.number);
  }

  /** `isHurried` cuts the grace short as soon as it returns true. */
  async stop(id: string, isHurried: () => boolean): Promise<void> {
    const { table, observer, stopGraceMs } = this.#options;
    const { live } = await observer.observe(id);
    if (live === null) return;
    const isKilled = await endAll(table, live.claim, stopGraceMs, isHurried);
    if (isKilled) await noteExit(this.#launches(id), live.number, killedStatus);
    await noteGone(this.#launches(id), live.number);
  }

  async resume(launch: SandboxLaunch): Promise<void> {
    await this.clearUp(launch.id);
    const { live, observed } = await this.#options.observer.observe(launch.id);
    if (observed.state === 'stopped') await this.#run(launch, () => {});
    if (live === null || (observed.state !== 'frozen' && !live.isFreezing)) return;
    await releaseAll(this.#options.table, live.claim);
    await noteFreezeOver(this.#launches(launch.id), live.number);
  }

  async remove(id: string): Promise<void> {
    const { layout, table, ports } = this.#options;
    await discardSandbox(layout, id);
    const folders = await endDiscarded(layout, table, id);
    await ports.releaseAll(async (owner) => owner === id);
    await removeDiscarded(folders);
  }

  /** Ends what a command that ended by itself left behind. */
  async clearUp(id: string): Promise<void> {
    const { table, observer } = this.#options;
    const { live } = await observer.observe(id);
    if (live === null || (await readExit(this.#launches(id), live.number)) === null) return;
    // The leader notes the exit, then ends the group and itself.
    if ((await findLeader(table, live.claim.leader)) !== null) return;
    await killAll(table, live.claim);
    await noteGone(this.#launches(id), live.number);
  }

  async #run(launch: SandboxLaunch, progress: Progress): Promise<void> {
    const { record } = await this.#options.observer.observe(launch.id);
    if (record === null) return;
    const leader = await runLaunch(this.#options, launch, record, progress);
    if (leader !== null) this.#options.onOwnLeader(launch.id, leader);
  }

  #launches(id: string): string {
    return this.#options.layout.sandbox(id).launches;
  }
}
