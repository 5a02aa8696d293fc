import { z } from 'zod';

// Only what is read of the host's answers.

const sha = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u);

export const Project = z.object({
  id: z.number().int().positive(),
  path: z.string().min(1),
  path_with_namespace: z.string().min(1),
  default_branch: z.string().nullish(),
  empty_repo: z.boolean().optional(),
});
export type Project = z.infer<typeof Project>;

/** One commit, asked for by its name. */
export const HeadCommit = z.object({
  id: sha,
  project_id: z.number().int().positive().optional(),
  web_url: z.string().optional(),
});
export type HeadCommit = z.infer<typeof HeadCommit>;

export const Commit = z.object({
  id: sha,
  parent_ids: z.array(sha),
  committed_date: z.string().transform(readDate),
});
export type Commit = z.infer<typeof Commit>;

export const TreeEntry = z.object({
  id: z.string(),
  type: z.string(),
  path: z.string().min(1),
  mode: z.string(),
});
export type TreeEntry = z.infer<typeof TreeEntry>;

export const Version = z.object({ version: z.string().regex(/^[\w.+-]{1,64}$/u) });

// The last millisecond that RFC 3339 can write as a whole second; git's dates go further.
const lastDate = 253_402_300_799_000;

function readDate(text: string, context: z.RefinementCtx<string>): number {
  if (/^\+?\d{5,}-/u.test(text)) return lastDate;
  const time = Date.parse(text);
  if (!Number.isNaN(time)) return Math.max(0, time);
  context.addIssue({ code: 'custom', message: 'is no date' });
  return z.NEVER;
}
