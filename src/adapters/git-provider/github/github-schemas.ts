import { z } from 'zod';
import { CommitDate, Oid } from '../http-client.ts';

/** `owner/name` */
const fullName = z.string().regex(/^[^/]+\/[^/]+$/u);

/** The text of an answer to `commits/HEAD`. */
export const HeadText = z.string().trim().pipe(Oid);

export const RestRepository = z.object({ name: z.string().min(1), full_name: fullName, default_branch: z.string() });
export type RestRepository = z.infer<typeof RestRepository>;

const RestEntry = z.object({ path: z.string().min(1), mode: z.string(), type: z.string(), sha: Oid });

export const RestTree = z.object({ truncated: z.boolean(), tree: z.array(RestEntry) });
export type RestTree = z.infer<typeof RestTree>;

export const RestCommits = z.array(
  z.object({ commit: z.object({ committer: z.object({ date: CommitDate }) }) }).transform(({ commit }) => commit.committer.date),
);

export const RestComparison = z.object({ status: z.enum(['ahead', 'behind', 'identical', 'diverged']) });

export const GraphqlAnswer = z.object({
  data: z.unknown().optional(),
  errors: z.array(z.object({ type: z.string().optional(), message: z.string(), path: z.array(z.unknown()).optional() })).optional(),
});
export type GraphqlErrors = NonNullable<z.infer<typeof GraphqlAnswer>['errors']>;

const GraphqlEntry = z.object({
  nameRaw: z.base64(),
  type: z.string(),
  mode: z.int(),
  oid: Oid,
  get object() {
    return z.object({ entries: z.array(GraphqlEntry).nullish() }).nullish();
  },
});
export type GraphqlEntry = z.infer<typeof GraphqlEntry>;

/** An entry of a commit's tree. If it is no directory, `object` has no entries. */
const GraphqlDirectory = z.object({ oid: Oid, type: z.string(), object: z.object({ entries: z.array(GraphqlEntry).nullish() }).nullish() });

const GraphqlTree = z.object({ oid: Oid, entries: z.array(GraphqlEntry).nullish() });

export const GraphqlRepository = z.object({
  repository: z
    .object({
      name: z.string().min(1),
      nameWithOwner: fullName,
      defaultBranchRef: z
        .object({
          name: z.string(),
          target: z.object({ oid: Oid, file: GraphqlDirectory.nullish(), tree: GraphqlTree.optional() }).nullable(),
          compare: z.object({ aheadBy: z.int(), baseTarget: z.object({ oid: Oid }) }).nullish(),
        })
        .nullable(),
    })
    .nullable(),
});
export type GraphqlRepository = NonNullable<z.infer<typeof GraphqlRepository>['repository']>;

const GraphqlHistory = z.object({
  totalCount: z.int(),
  nodes: z.array(z.object({ committedDate: CommitDate })),
  pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
});
export type GraphqlHistory = z.infer<typeof GraphqlHistory>;

export const GraphqlHistories = z.object({
  repository: z.object({ object: z.record(z.string(), GraphqlHistory).nullable() }).nullable(),
});
