import { readGit } from '../hosted-repositories.ts';

/** Git's plumbing on one repository, as byte strings. */
export interface Git {
  /** Returns the output of git. Null if git fails. */
  (args: readonly string[]): Promise<string | null>;
}

/** Caches results for full commit ids, which can't change. */
export function gitOf(gitDir: string, memory: Map<string, Promise<string | null>>): Git {
  return async (args) => {
    if (!args.some((arg) => /\b[0-9a-f]{40}\b/u.test(arg)) || args.includes('rev-parse')) return await execute(gitDir, args);
    const key = JSON.stringify([gitDir, args]);
    const known = memory.get(key) ?? execute(gitDir, args);
    memory.set(key, known);
    return await known;
  };
}

/** Names are bytes, and are passed on unchanged. */
async function execute(gitDir: string, args: readonly string[]): Promise<string | null> {
  return (await readGit(gitDir, args))?.toString('latin1') ?? null;
}

/** Text as GitLab shows it: what is not UTF-8 is left out. */
export function fromBytes(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8').replaceAll('\ufffd', '');
}
