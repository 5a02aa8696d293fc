import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import pLimit from 'p-limit';

/** A repository that the double of a git host serves. */
export interface HostedRepository {
  readonly id: number;
  path: string;
  gitDir: string;
  /** `private` ones need a credential. Nobody may read the code of `closed` ones. */
  visibility: 'public' | 'private' | 'closed';
}

/** The repositories of a double, by their present and former paths, in any case. */
export interface HostedRepositories {
  /** Adds the repository, or replaces the one with this path. */
  put(path: string, gitDir: string, visibility?: HostedRepository['visibility']): void;
  /** The old path leads to the new one. */
  rename(from: string, to: string): void;
  remove(path: string): void;
  all(): readonly HostedRepository[];
  /** Finds a path or an id. `moved` is true for a former path. */
  find(name: string): { readonly repository: HostedRepository; readonly moved: boolean } | null;
}

export function createHostedRepositories(usual: HostedRepository['visibility']): HostedRepositories {
  const repositories = new Map<string, HostedRepository>();
  const idsByFormerPath = new Map<string, number>();
  let lastId = 1000;
  const byId = (wanted: string): HostedRepository | undefined => [...repositories.values()].find(({ id }) => String(id) === wanted);
  return {
    put(path, gitDir, visibility = usual) {
      const id = repositories.get(path.toLowerCase())?.id ?? (lastId += 1);
      repositories.set(path.toLowerCase(), { id, path, gitDir, visibility });
    },
    rename(from, to) {
      const repository = repositories.get(from.toLowerCase());
      if (repository === undefined) throw new Error(`there is no ${from}`);
      repositories.delete(from.toLowerCase());
      repository.path = to;
      repositories.set(to.toLowerCase(), repository);
      idsByFormerPath.set(from.toLowerCase(), repository.id);
    },
    remove: (path) => void repositories.delete(path.toLowerCase()),
    all: () => [...repositories.values()],
    find(name) {
      const repository = repositories.get(name.toLowerCase()) ?? byId(name);
      if (repository !== undefined) return { repository, moved: false };
      const renamed = byId(String(idsByFormerPath.get(name.toLowerCase())));
      return renamed === undefined ? null : { repository: renamed, moved: true };
    },
  };
}

const run = promisify(execFile);
const fewAtOnce = pLimit(6);

/** Runs git without a user's configuration, only a few processes at once. Returns its output. Null if git fails. */
export async function readGit(gitDir: string, args: readonly string[]): Promise<Buffer | null> {
  const env = { PATH: process.env['PATH'], GIT_DIR: gitDir, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', GIT_LITERAL_PATHSPECS: '1' };
  const options = { env, encoding: 'buffer', maxBuffer: 256 * 1024 * 1024 } as const;
  return await fewAtOnce(async () => (await run('git', args, options)).stdout).catch(() => null);
}
