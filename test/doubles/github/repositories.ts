/** A repository that the double serves. */
export interface ServedRepository {
  readonly id: number;
  /** `owner/name` */
  readonly path: string;
  readonly gitDir: string;
  /** Only visible with a credential. */
  readonly isPrivate: boolean;
}

/** The repositories by their present and former names, case-insensitive. */
export interface Repositories {
  put(path: string, gitDir: string, options?: { readonly isPrivate?: boolean }): void;
  rename(from: string, to: string): void;
  remove(path: string): void;
  /** `moved` if it has another name now. */
  find(path: string): { readonly repository: ServedRepository; readonly moved: boolean } | null;
  byId(id: number): ServedRepository | null;
  all(): readonly ServedRepository[];
}

export function createRepositories(): Repositories {
  const repositories = new Map<string, ServedRepository>();
  const formerNames = new Map<string, number>();
  let lastId = 1000;

  function byId(id: number): ServedRepository | null {
    return [...repositories.values()].find((each) => each.id === id) ?? null;
  }

  return {
    put(path, gitDir, { isPrivate = false } = {}) {
      const id = repositories.get(path.toLowerCase())?.id ?? (lastId += 1);
      repositories.set(path.toLowerCase(), { id, path, gitDir, isPrivate });
    },
    rename(from, to) {
      const repository = repositories.get(from.toLowerCase());
      if (repository === undefined) throw new Error(`there is no ${from}`);
      repositories.delete(from.toLowerCase());
      repositories.set(to.toLowerCase(), { ...repository, path: to });
      formerNames.set(from.toLowerCase(), repository.id);
    },
    remove: (path) => void repositories.delete(path.toLowerCase()),
    find(path) {
      const repository = repositories.get(path.toLowerCase());
      if (repository !== undefined) return { repository, moved: false };
      const id = formerNames.get(path.toLowerCase());
      const renamed = id === undefined ? null : byId(id);
      return renamed === null ? null : { repository: renamed, moved: true };
    },
    byId,
    all: () => [...repositories.values()],
  };
}
