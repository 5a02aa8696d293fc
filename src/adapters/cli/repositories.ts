import type { Command } from 'commander';
import { clientOf, type JsonOption, notice, print, subcommand, table } from './console.ts';

interface Options extends JsonOption {
  readonly url?: string;
}

export function addRepositories(parent: Command): void {
  subcommand(parent, 'search <query>', 'find repositories by a part of their name').action(searchRepositories);
  subcommand(parent, 'branches <name>', 'list the branches of one').action(listBranches);
}

async function searchRepositories(query: string, options: Options): Promise<void> {
  const page = await clientOf(options).request('GET /api/v1/repositories/search', { query: { query } });
  print(options, page, table(['NAME', 'PROVIDER'], page.items.map(({ name, git_provider }) => [name, git_provider])));
  if (page.next_page_id !== null) notice('There may be more. Search for a longer part of the name.');
}

async function listBranches(name: string, options: Options): Promise<void> {
  const page = await clientOf(options).request('GET /api/v1/repositories/{repository_name}/branches', { path: { repository_name: name } });
  const rows = page.items.map(({ name, commit, is_default }) => [name, commit, is_default ? 'yes' : 'no']);
  print(options, page, table(['NAME', 'COMMIT', 'DEFAULT'], rows));
  if (page.next_page_id !== null) notice('There are more.');
}
