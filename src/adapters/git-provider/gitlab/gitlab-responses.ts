import { z } from 'zod';
import type { Branch, RepositoryInfo } from '../../../ports/git-provider.ts';
import { CommitDate, Oid } from '../response-fields.ts';

// These schemas contain only the fields that are used.

export const Project = z.object({
  id: z.number().int().positive(),
  path: z.string().min(1),
  path_with_namespace: z.string().min(1),
  default_branch: z.string().nullish(),
  empty_repo: z.boolean().optional(),
  archived: z.boolean().optional(),
});
export type Project = z.infer<typeof Project>;

export function infoOf({ path_with_namespace: path, empty_repo: empty, default_branch: branch, archived }: Project): RepositoryInfo {
  return { path, defaultBranch: empty === true ? null : (branch ?? null), ...(archived === true && { isArchived: true }) };
}

export const HeadCommit = z.object({
  id: Oid,
  project_id: z.number().int().positive().optional(),
  web_url: z.string().optional(),
});
export type HeadCommit = z.infer<typeof HeadCommit>;

export const Commit = z.object({ committed_date: CommitDate });
export type Commit = z.infer<typeof Commit>;

export const TreeEntry = z.object({
  id: Oid,
  type: z.string(),
  path: z.string().min(1),
  mode: z.string(),
});

export const ListedBranch = z
  .object({ name: z.string().min(1), commit: z.object({ id: Oid }) })
  .transform(({ name, commit }): Branch => ({ name, commit: commit.id }));

export const MergeRequest = z
  .object({
    iid: z.int().positive(),
    web_url: z.url({ protocol: /^https?$/u }),
    target_branch: z.string(),
    // Null if the fork was deleted.
    source_project_id: z.int().nullish(),
    draft: z.boolean().optional(),
  })
  .transform(({ iid: number, web_url: url, target_branch: base, source_project_id: sourceProject, draft: isDraft = false }) => ({
    number, url, base, sourceProject, isDraft,
  }));
export type MergeRequest = z.infer<typeof MergeRequest>;

export const Version = z.object({ version: z.string().regex(/^[\w.+-]{1,64}$/u) });

/** A page of a list. GitLab names the next one by a number or by a token; null if there is none. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: PageName | null;
}

const PageName = z.union([z.object({ pageToken: z.string() }), z.object({ page: z.number() })]);
export type PageName = z.infer<typeof PageName>;

export function pageOf<T>(item: z.ZodType<T>): z.ZodType<Page<T>> {
  return z.object({ items: z.array(item), next: PageName.nullable() });
}
