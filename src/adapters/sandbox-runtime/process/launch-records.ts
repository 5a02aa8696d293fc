import { randomUUID } from 'node:crypto';
import { link, readdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Reason } from '../../../domain/reason.ts';
import type { KeptLaunch } from '../../../ports/sandbox-runtime.ts';
import { ignoring } from '../../shared/system-errors.ts';

/**
 * What is written down of a sandbox's launches, one set of files for each number:
 *
 * - `<n>.claim`: the launch was taken, and by whom. It is linked into place whole and never changes or goes, so that no
 *   number is ever taken twice.
 * - `<n>.exit`: the command's exit status, as a shell reports it.
 * - `<n>.gone`: no process of the launch is left. None can come back, so nobody has to look again.
 * - `<n>.freezing`: a freeze is under way, and some processes may not be held yet.
 */
export interface LaunchRecord extends LaunchNumber {
  /** Null if the command never ran, or if a power failure left a claim that can't be read; nothing runs then. */
  readonly claim: Claim | null;
  readonly isGone: boolean;
  readonly isFreezing: boolean;
}

export interface LaunchNumber {
  /** The folder of all launches of the sandbox. */
  readonly folder: string;
  /** 0 if the command never ran. */
  readonly number: number;
}

/** Who took a launch, and what was planned for it. */
export interface Claim {
  readonly leader: Leader | null;
  readonly plan: LaunchPlan;
}

/** The process that leads the sandbox's group. */
export interface Leader {
  readonly pid: number;
  readonly start: string;
  readonly boot: string;
}

/** Returns null if there is no sandbox, or none any more. */
export async function readLastLaunch(folder: string): Promise<LaunchRecord | null> {
  const names = await readdir(folder).catch(ignoring('ENOENT', 'ENOTDIR'));
  if (names === null) return null;
  const number = Math.max(0, ...names.map((name) => Number(/^(\d+)\.claim$/.exec(name)?.[1] ?? 0)));
  const claim = number === 0 ? '' : await readFile(launchFile({ folder, number }, 'claim'), 'utf8').catch(ignoring('ENOENT', 'ENOTDIR'));
  if (claim === null) return null;
  return {
    folder,
    number,
    claim: parseClaim(claim),
    isGone: names.includes(`${number}.gone`),
    isFreezing: names.includes(`${number}.freezing`),
  };
}

export function launchFile({ folder, number }: LaunchNumber, kind: 'claim' | 'exit' | 'gone' | 'freezing'): string {
  return join(folder, `${number}.${kind}`);
}

/** Takes a launch that cannot begin, so that it counts as tried. Somebody who was first stays first. */
export async function refuseLaunch(launch: LaunchNumber, plan: LaunchPlan): Promise<void> {
  const claim = launchFile(launch, 'claim');
  const own = `${claim}.${randomUUID()}`;
  await writeFile(own, `-\n-\n-\n${JSON.stringify(plan)}\n`);
  try {
    await link(own, claim).catch(ignoring('EEXIST'));
  } finally {
    await unlink(own);
  }
}

/** The exit status; null when it is not known. */
export async function readExit(launch: LaunchNumber): Promise<number | null> {
  const text = await readFile(launchFile(launch, 'exit'), 'latin1').catch(ignoring('ENOENT'));
  return text !== null && /^\d+\n$/.test(text) ? Number(text) : null;
}

/** Notes something of a launch, unless that is noted already. An exit status is noted by the launcher itself if it can. */
export async function addNote(launch: LaunchNumber, kind: 'exit' | 'gone' | 'freezing', text = ''): Promise<void> {
  // Without a folder the sandbox was removed meanwhile, and there is nothing to note.
  await writeFile(launchFile(launch, kind), text, { flag: 'wx' }).catch(ignoring('EEXIST', 'ENOENT'));
}

export async function noteFreezeOver(launch: LaunchNumber): Promise<void> {
  await unlink(launchFile(launch, 'freezing')).catch(ignoring('ENOENT'));
}

const LaunchPlan = z.object({
  /** Unguessable value of the variable by which the processes of the launch are known. */
  mark: z.string(),
  ports: z.array(z.object({ name: z.string(), port: z.number(), hostPort: z.number() })),
  /** The id of the spec and of the owner, for a sandbox whose record is lost. Older claims do not have them. */
  spec: z.string().optional(),
  owner: z.string().optional(),
  /** The working directory by which the spec's programs know the workspace. Older claims do not have it. */
  workingDir: z.string().optional(),
  /** Where the command looks for programs. */
  path: z.string().optional(),
  /** Why the command could not be run at all. Older claims hold a text. */
  refused: z
    .union([z.string().transform((text) => ({ code: 'noted', text })), z.looseObject({ code: z.string() })])
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this runtime wrote it; who shows it copes with an unknown code
    .transform((reason) => reason as unknown as Reason)
    .optional(),
});

/** What is decided for a launch before it begins. It holds no secret: the process list shows it. */
export type LaunchPlan = Readonly<z.infer<typeof LaunchPlan>>;

/** Returns what the last launch says about the sandbox. No variable is fixed, since each resumption hands them over again. */
export function keptLaunch(record: LaunchRecord | null): KeptLaunch | null {
  if (record === null) return null;
  const { spec: specId = null, owner: ownerId = null } = record.claim?.plan ?? {};
  return { specId, ownerId, fixedEnv: {} };
}

function parseClaim(text: string): Claim | null {
  const [pid = '', start = '', boot = '', json = ''] = text.split('\n');
  try {
    const plan = LaunchPlan.parse(JSON.parse(json));
    return { leader: /^[1-9]\d*$/.test(pid) && pid !== '1' ? { pid: Number(pid), start, boot } : null, plan };
  } catch {
    return null;
  }
}
