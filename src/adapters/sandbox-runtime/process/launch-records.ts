import { randomUUID } from 'node:crypto';
import { link, readdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Reason } from '../../../domain/reason.ts';
import type { KeptLaunch } from '../../../ports/sandbox-runtime.ts';
import { parseJson } from '../../shared/json.ts';
import { ignoring } from '../../shared/system-errors.ts';

/**
 * The record of a sandbox's launch. Each launch has a number and these files:
 *
 * - `<n>.claim`: the claim of the launch. It is created complete, with a hard link, and never changed or removed, so that no number is
 *   claimed twice.
 * - `<n>.exit`: the command's exit status, as a shell reports it.
 * - `<n>.gone`: all processes of the launch have ended. None can come back, so no further check is needed.
 * - `<n>.freezing`: a freeze is in progress, and some processes may still run.
 */
export interface LaunchRecord extends LaunchNumber {
  /** Null if the command never ran, or if a power failure damaged the claim. In both cases nothing runs. */
  readonly claim: Claim | null;
  readonly isGone: boolean;
  readonly isFreezing: boolean;
}

export interface LaunchNumber {
  readonly folder: string;
  /** {@link neverLaunched} if the command never ran. */
  readonly number: number;
}

/** The number before that of the first launch. */
export const neverLaunched = 0;

export interface Claim {
  readonly leader: Leader | null;
  readonly plan: LaunchPlan;
}

export interface Leader {
  readonly pid: number;
  readonly start: string;
  readonly boot: string;
}

/** Returns the sandbox's newest launch. Null if its folder does not exist. */
export async function readLastLaunch(folder: string): Promise<LaunchRecord | null> {
  const names = await readdir(folder).catch(ignoring('ENOENT', 'ENOTDIR'));
  if (names === null) return null;
  const number = Math.max(neverLaunched, ...names.map((name) => Number(/^(\d+)\.claim$/.exec(name)?.[1] ?? neverLaunched)));
  // A sandbox that was never launched has no file. An empty claim is parsed as none.
  const claim = number === neverLaunched
    ? ''
    : await readFile(launchFile({ folder, number }, 'claim'), 'utf8').catch(ignoring('ENOENT', 'ENOTDIR'));
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

/** Claims a launch that can't start, so that it counts as tried. An earlier claim stays. */
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

/** Returns the exit status. Null if unknown. */
export async function readExit(launch: LaunchNumber): Promise<number | null> {
  const text = await readFile(launchFile(launch, 'exit'), 'latin1').catch(ignoring('ENOENT'));
  return text !== null && /^\d+\n$/.test(text) ? Number(text) : null;
}

/** Adds a note to a launch, unless it exists. If possible, the launcher itself notes the exit status. */
export async function addNote(launch: LaunchNumber, kind: 'exit' | 'gone' | 'freezing', text = ''): Promise<void> {
  // If the folder is missing, the sandbox was removed meanwhile.
  await writeFile(launchFile(launch, kind), text, { flag: 'wx' }).catch(ignoring('EEXIST', 'ENOENT'));
}

export async function removeFreezeNote(launch: LaunchNumber): Promise<void> {
  await unlink(launchFile(launch, 'freezing')).catch(ignoring('ENOENT'));
}

const LaunchPlan = z.object({
  /** The secret value of the environment variable that marks the processes of the launch. */
  mark: z.string(),
  ports: z.array(z.object({ name: z.string(), port: z.number(), hostPort: z.number() })),
  /** The ids of the spec and the owner, for a sandbox whose record is lost. Missing in older claims. */
  spec: z.string().optional(),
  owner: z.string().optional(),
  /** The workspace's path for the spec's programs. Missing in older claims. */
  workingDir: z.string().optional(),
  /** The command's search path for programs. */
  path: z.string().optional(),
  /** The names of the variables that only the command gets. Missing in older claims. */
  secrets: z.array(z.string()).optional(),
  /** Why the command could not run at all. A text in older claims. */
  refused: z
    .union([z.string().transform((text) => ({ code: 'noted', text })), z.looseObject({ code: z.string() })])
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this runtime wrote it, and its readers accept an unknown code
    .transform((reason) => reason as unknown as Reason)
    .optional(),
});

/** The plan of a launch before it begins. It must not contain a secret: the process list shows it. */
export type LaunchPlan = Readonly<z.infer<typeof LaunchPlan>>;

/** Returns the last launch's data about the sandbox. No variable is fixed, since each resume passes all of them again. */
export function keptLaunch(record: LaunchRecord | null): KeptLaunch | null {
  if (record === null) return null;
  const { spec: specId = null, owner: ownerId = null } = record.claim?.plan ?? {};
  return { specId, ownerId, fixedEnv: {} };
}

function parseClaim(text: string): Claim | null {
  const [pid = '', start = '', boot = '', json = ''] = text.split('\n');
  const plan = parseJson(LaunchPlan, json);
  return plan === undefined ? null : { leader: /^[1-9]\d*$/.test(pid) && pid !== '1' ? { pid: Number(pid), start, boot } : null, plan };
}
