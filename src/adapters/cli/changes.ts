import type { Command } from 'commander';
import type { z } from 'zod';
import { conversationChanges, publication, readBytes, type SkepClient } from '../../client/client.ts';
import { clientOf, type JsonOption, notice, print, printBytes, stopSignal, table } from './console.ts';

/** Adds what the two commands take and do. */
export function addChanges(changes: Command, publishing: Command): void {
  changes
    .option('--patch', 'all as a patch, for git apply --binary')
    .option('--file <path>', 'only this file, as a patch')
    .action(showChanges);
  publishing
    .option('--branch <branch>', 'a branch other than the one of the conversation')
    .option('-m, --message <text>', 'the message of the commit of what is not committed')
    .action(publish);
}

interface ChangesOptions extends JsonOption {
  readonly url?: string;
  readonly patch?: boolean;
  readonly file?: string;
}

/** Prints what was changed in a conversation: a list, or a patch as it is, but on a terminal without what controls it. */
async function showChanges(id: string, { patch = false, file, ...options }: ChangesOptions): Promise<void> {
  const client = clientOf(options);
  if (!patch && file === undefined) {
    const changes = await client.get(changesPath(id), conversationChanges);
    print(options, changes, changesTable(changes));
    if (!changes.complete) notice('Git could not read some files, which are not listed.');
    return;
  }
  await printBytes(readPatch(client, id, file, stopSignal()));
}

interface PublishOptions extends JsonOption {
  readonly url?: string;
  readonly branch?: string;
  readonly message?: string;
}

/** Pushes what was changed, and prints to which branch. */
async function publish(id: string, { branch, message, ...options }: PublishOptions): Promise<void> {
  const pushed = await publishChanges(clientOf(options), id, { branch, commit_message: message });
  print(options, pushed, `${pushed.branch} ${pushed.commit}\n`);
}

/** Pushes what was changed. */
export async function publishChanges(client: SkepClient, id: string, body: object): Promise<z.output<typeof publication>> {
  return await client.post(`/api/v1/app-conversations/${encodeURIComponent(id)}/publish`, body, publication);
}

/** Yields the patch of all files, or of one. */
export function readPatch(client: SkepClient, id: string, file: string | undefined, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  const query = new URLSearchParams({ format: 'patch', ...(file !== undefined && { path: file }) });
  return readBytes(client, `${changesPath(id)}?${query.toString()}`, signal);
}

function changesPath(id: string): string {
  return `/api/v1/app-conversations/${encodeURIComponent(id)}/changes`;
}

function changesTable({ commits, files }: z.output<typeof conversationChanges>): string {
  const rows = files.map(({ path, status, old_path, binary, lines_added, lines_removed, committed }) => {
    const lines = binary ? 'binary' : `+${lines_added ?? 0} -${lines_removed ?? 0}`;
    return [status, lines, committed ? 'yes' : 'no', old_path === null ? path : `${old_path} -> ${path}`];
  });
  const made = commits.map(({ commit, author_name, subject }) => [commit.slice(0, 10), author_name, subject]);
  const commitTable = made.length === 0 ? '' : `${table(['COMMIT', 'AUTHOR', 'SUBJECT'], made)}\n`;
  return files.length === 0 ? `${commitTable}Nothing differs.\n` : commitTable + table(['STATUS', 'LINES', 'COMMITTED', 'PATH'], rows);
}
