import { type ChildProcess, fork } from 'node:child_process';
import pLimit from 'p-limit';
import type { GitAnswer, GitQuestion } from './git-process.ts';

/** A repository that the double of a git host serves. */
export interface HostedRepository {
  readonly id: number;
  path: string;
  gitDir: string;
  /** `private` ones need a credential. Nobody may read the code of `closed` ones. */
  visibility: 'public' | 'private' | 'closed';
  archived?: boolean;
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

const fewAtOnce = pLimit(6);
const waiting = new Map<number, (output: Buffer | null) => void>();
let gitProcess: ChildProcess | undefined;
let lastQuestion = 0;

/**
 * Runs git without a user's configuration, only a few processes at once. Returns its output. Null if git fails. A small process starts
 * them: that takes more time the more memory the starting process has.
 */
export function readGit(gitDir: string, args: readonly string[]): Promise<Buffer | null> {
  return fewAtOnce(() => new Promise((resolve) => {
    gitProcess ??= startGitProcess();
    const id = (lastQuestion += 1);
    waiting.set(id, resolve);
    gitProcess.send({ id, gitDir, args } satisfies GitQuestion);
  }));
}

function startGitProcess(): ChildProcess {
  const started = fork(new URL('git-process.ts', import.meta.url), { serialization: 'advanced' });
  started.on('message', ({ id, output }: GitAnswer) => {
    waiting.get(id)?.(output);
    waiting.delete(id);
  });
  started.unref();
  started.channel?.unref();
  return started;
}
