import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ChangeList } from '../../../../src/domain/change.ts';
import type { Reason } from '../../../../src/domain/reason.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { CheckoutRequest, RepositoryCheckouts } from '../../../../src/ports/repository-checkouts.ts';
import { type SnapshotRequest, SnapshotRefusal, type WorkTreeSnapshot } from '../../../../src/ports/work-tree-snapshot.ts';
import { executeIn, type WorkTree } from '../../../contracts/work-tree.ts';
import { open } from './support.ts';

export function take(mirror: RepositoryCheckouts, { folder, commit }: Pick<WorkTree, 'folder' | 'commit'>): Promise<WorkTreeSnapshot> {
  return mirror.takeSnapshot({ base: commit, run: (command) => executeIn(folder, command) }, neverAborts);
}

/** Takes a snapshot of a work tree with a new file. */
export async function takeWithNewFile(mirror: RepositoryCheckouts, request: CheckoutRequest): Promise<{ tree: WorkTree; snapshot: WorkTreeSnapshot }> {
  const tree = await open(mirror, request);
  await writeFile(join(tree.folder, 'new'), 'new\n');
  return { tree, snapshot: await take(mirror, tree) };
}

/** Lists the changes of the work tree. */
export function list(mirror: RepositoryCheckouts, { folder, commit }: Pick<WorkTree, 'folder' | 'commit'>): Promise<ChangeList> {
  return mirror.listChanges({ base: commit, run: (command) => executeIn(folder, command) }, neverAborts);
}

/** A request to a sandbox that writes exactly this. */
export function writing(base: string | null, written: readonly (string | Uint8Array)[], exitCode = 0): SnapshotRequest {
  const run = async () => ({
    stdin: new WritableStream(),
    stdout: new Blob([...written] as ConstructorParameters<typeof Blob>[0]).stream(),
    stderr: new Blob(['what it says']).stream(),
    exited: Promise.resolve(exitCode),
    kill: async () => {},
  });
  return { base, run };
}

/** Takes a snapshot from a sandbox that writes exactly this. */
export function receive(mirror: RepositoryCheckouts, base: string | null, written: readonly (string | Uint8Array)[]): Promise<WorkTreeSnapshot> {
  return mirror.takeSnapshot(writing(base, written), neverAborts);
}

export async function reasonOf(promise: Promise<unknown>): Promise<Reason> {
  const error = await promise.then(() => null, (error: unknown) => error);
  if (error instanceof SnapshotRefusal) return error.reason;
  throw new Error('expected a refusal', { cause: error });
}

/** Returns what the command writes for the work tree: its first line and its pack. */
export async function writtenIn(mirror: RepositoryCheckouts, { folder, commit }: WorkTree): Promise<{ line: string; pack: Buffer }> {
  let all = Buffer.alloc(0);
  await using _ = await mirror.takeSnapshot({
    base: commit,
    run: async (command) => {
      all = execFileSync(command[0] ?? '', command.slice(1), { cwd: folder, encoding: 'buffer' });
      return { ...(await executeIn(folder, ['true'])), stdout: new Blob([new Uint8Array(all)]).stream() };
    },
  }, neverAborts);
  const end = all.indexOf(10);
  return { line: all.toString('latin1', 0, end), pack: all.subarray(end + 1) };
}
