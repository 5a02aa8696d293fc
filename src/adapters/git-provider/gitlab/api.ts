import { z } from 'zod';
import type { Client } from './client.ts';
import { malformed } from './failures.ts';
import type { Page, PageName } from './page.ts';
import { Commit, HeadCommit, Project, TreeEntry, Version } from './schema.ts';

/** By its full path, or by the number that GitLab gave it. */
export type ProjectName = string | number;

export interface HistoryQuery {
  /** A commit, or a range of them. */
  readonly ref: string;
  readonly path?: string;
  readonly firstParent?: boolean;
  readonly page?: number;
}

/** The few requests that are made of GitLab, each exactly one. Reject with a `Refusal` where the host refuses. */
export interface Api {
  project(project: ProjectName): Promise<Project>;
  commit(project: ProjectName, name: string): Promise<HeadCommit>;
  /** The newest first. */
  history(project: ProjectName, query: HistoryQuery): Promise<Page<Commit>>;
  /** All below the directory, at any depth; the empty one is the root. */
  tree(project: ProjectName, ref: string, directory: string, page: PageName | null): Promise<Page<TreeEntry>>;
  version(): Promise<string>;
}

/** The largest page that GitLab gives. */
export const pageSize = 100;

export function createApi({ projects, commits, repositories, get }: Client): Api {
  return {
    project: async (project) => read(Project, await projects.show(project), 'a project'),
    commit: async (project, name) => read(HeadCommit, await commits.show(project, name, { stats: false }), 'a commit'),
    async history(project, { ref, path, firstParent, page = 1 }) {
      const options = {
        refName: ref,
        perPage: pageSize,
        page,
        ...(firstParent !== undefined && { firstParent }),
        ...(path !== undefined && { path, follow: false }),
      };
      return read(pageOf(Commit), await commits.all(project, options), 'commits');
    },
    async tree(project, ref, directory, page) {
      const options = {
        ref,
        recursive: true,
        perPage: pageSize,
        ...(directory !== '' && { path: directory }),
        ...(page === null || 'pageToken' in page ? { pagination: 'keyset' as const, ...page } : page),
      };
      return read(pageOf(TreeEntry), await repositories.allRepositoryTrees(project, options), 'a directory');
    },
    version: async () => read(Version, await get('version'), 'its version').version,
  };
}

const name = z.union([z.object({ pageToken: z.string() }), z.object({ page: z.number() })]);

function pageOf<T>(item: z.ZodType<T>): z.ZodType<Page<T>> {
  return z.object({ items: z.array(item), next: name.nullable() });
}

function read<T>(schema: z.ZodType<T>, answer: unknown, what: string): T {
  const { success, data } = schema.safeParse(answer);
  if (!success) throw malformed(what);
  return data;
}
