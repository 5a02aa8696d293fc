import { type Command, Option } from 'commander';
import type { api, SkepClient } from '../../client/index.ts';
import { clientOf, CommandError, type Common, notice, print, printBody, stoppable } from './console.ts';
import { table } from './tables.ts';
import { safeLine, safeText } from './safe-text.ts';

const changesPath = '/api/v1/app-conversations/{id}/changes';

/** Adds the options and actions of the two commands. */
export function addChanges(changes: Command, publishing: Command): void {
  changes
    .option('--patch', 'print all changes as a patch, for git apply --binary')
    .option('--file <path>', 'print the changes of this file as a patch')
    .action(showChanges);
  publishing
    .option('--branch <branch>', 'a branch other than the one of the conversation')
    .option('-m, --message <text>', 'the message of the commit with the uncommitted files')
    .option('--pull-request', 'open a pull or merge request for the branch, or update the open one; it needs --title')
    .addOption(new Option('--title <text>', 'the title of the pull request').implies({ pullRequest: true }))
    .addOption(new Option('--body <text>', 'the text of the pull request').implies({ pullRequest: true }))
    .addOption(new Option('--base <branch>', 'the branch to merge into; by default the default branch').implies({ pullRequest: true }))
    .addOption(new Option('--draft', 'open a new pull request as a draft').implies({ pullRequest: true }))
    .action(publish);
}

export const incomplete = 'Some work is left out: files that git could not read, changes in a git repository inside the work tree, '
  + 'commits of other branches, tags, stashes or work trees, or what was done after the changes were saved.';

type ChangesOptions = Common & { readonly patch?: boolean; readonly file?: string };

/** Prints the changes of a conversation as a list or as a patch. On a terminal, removes control characters from the patch. */
async function showChanges(id: string, { patch = false, file, ...options }: ChangesOptions): Promise<void> {
  const client = clientOf(options);
  const isPatch = patch || file !== undefined;
  if (isPatch && options.json === true) throw new CommandError('Use --json without --patch and --file: a patch is not JSON.');
  if (!isPatch) {
    const changes = await client.request(`GET ${changesPath}`, { path: { id } });
    print(options, changes, changesTable(changes));
    if (changes.kept_at != null) notice(`These changes were saved at ${safeText(changes.kept_at)}: the sandbox does not run.`);
    if (!changes.complete) notice(incomplete);
    return;
  }
  await stoppable(async (signal) => await printBody((await readPatch(client, id, file, signal)).body));
}

interface PublishOptions extends Common, Partial<api.PullRequestRequest> {
  readonly branch?: string;
  readonly message?: string;
  readonly pullRequest?: boolean;
}

/** Pushes the changes. Prints the branch, and the address of the pull request. */
async function publish(id: string, { branch, message, pullRequest = false, title, body, base, draft, ...options }: PublishOptions) {
  if (pullRequest && title === undefined) throw new CommandError('A pull request needs a title. Give it one with --title.');
  const wanted = title === undefined ? undefined : { title, body, base, draft };
  const pushed = await publishChanges(clientOf(options), id, { branch, commit_message: message, pull_request: wanted });
  const { pull_request: opened } = pushed;
  if (!pushed.complete) notice(incomplete);
  print(options, pushed, `${pushed.branch} ${pushed.commit}\n${opened === null ? '' : `${safeLine(opened.url)}\n`}`);
}

export async function publishChanges(client: SkepClient, id: string, body: api.PublishRequest): Promise<api.PublishResponse> {
  return await client.request('POST /api/v1/app-conversations/{id}/publish', { path: { id }, body });
}

/** Yields the patch of all files in whole lines, without control characters, so text of the agent can't cut a line in two. */
export async function* patchLines(client: SkepClient, id: string, signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest: string | null = null;
  const { body } = await readPatch(client, id, undefined, signal);
  for await (const bytes of body ?? []) {
    const lines: string[] = ((rest ?? '') + decoder.decode(bytes, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    if (lines.length > 0) yield safeText(`${lines.join('\n')}\n`);
  }
  if (rest !== '') yield rest === null ? 'There are no changes.\n' : safeText(`${rest}\n`);
}

async function readPatch(client: SkepClient, id: string, file: string | undefined, signal: AbortSignal): Promise<Response> {
  const input = { path: { id }, query: { format: 'patch', path: file }, signal } as const;
  return await client.stream(`GET ${changesPath}`, input);
}

function changesTable({ commits, files }: api.ConversationChanges): string {
  const rows = files.map(({ path, status, old_path, binary, lines_added, lines_removed, committed }) => {
    const lines = binary ? 'binary' : `+${lines_added ?? 0} -${lines_removed ?? 0}`;
    return [status, lines, committed ? 'yes' : 'no', old_path === null ? path : `${old_path} -> ${path}`];
  });
  const made = commits.map(({ commit, author_name, subject }) => [commit.slice(0, 10), author_name, subject]);
  const commitTable = made.length === 0 ? '' : `${table(['COMMIT', 'AUTHOR', 'SUBJECT'], made)}\n`;
  return files.length === 0 ? `${commitTable}There are no changes.\n` : commitTable + table(['STATUS', 'LINES', 'COMMITTED', 'PATH'], rows);
}
