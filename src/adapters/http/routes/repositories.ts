import { z } from 'zod';
import { sentenceOfFailure } from '../../shared/failure-sentences.ts';
import { text } from '../common-schemas.ts';
import { gitProviderFailures, operation } from '../operation.ts';
import { pageQuery, pageRequestOf, pageSchema, presentPage, readPage } from '../page-token.ts';
import { presenter } from '../presenter.ts';

const repository = z
  .object({
    name: z.string().meta({ description: 'The name for `selected_repository` of a conversation.', example: 'acme/shop' }),
    path: z.string().meta({ description: 'The path at its git provider.', example: 'acme/shop' }),
    git_provider: z.string().meta({ example: 'github' }),
  })
  .meta({ id: 'Repository', description: 'A repository of a git provider.' });

const searchFailure = z.object({
  git_provider: z.string().meta({ example: 'github' }),
  code: z.string().meta({ description: 'The code of the failure, as in an error response.', example: 'provider_failed' }),
  detail: z.string().describe('The failure, as a sentence.'),
});

const repositoryPage = pageSchema(repository, 'RepositoryPage').extend({
  failures: z.array(searchFailure).describe('The git providers that failed. Their repositories are missing on this page.'),
}).meta({ id: 'RepositoryPage' });

const branch = z
  .object({ name: z.string(), commit: z.string().describe('The id of its last commit.'), is_default: z.boolean() })
  .meta({ id: 'Branch' });

export const repositoryOperations = [
  operation('get', '/api/v1/repositories/search', {
    tag: 'Repositories',
    operationId: 'search_repositories',
    summary: 'Search repositories',
    description:
      'Searches by name, in all git providers at once: each has a share of the page. Finds what the deployment can see and your key can '
      + 'use. GitHub also finds public ones of others. A page may be short, or empty, and yet not be the last one. If a git provider '
      + 'fails, the page names it in `failures`, beside the results of the others. If the last page has no results, its failure is the '
      + 'response.',
    query: z.object({
      query: text(200).min(1).meta({ description: 'A part of the name. Upper and lower case are equal.', example: 'shop' }),
      ...pageQuery,
    }),
    success: { status: 200, description: 'A page of repositories.', schema: repositoryPage },
    failures: ['listing_unsupported', ...gitProviderFailures],
    handle: async (context, { query }) => {
      const { skep: { repositories }, principal, closed } = context;
      const listing = `repositories/${query.query}`;
      const request = pageRequestOf(context, listing, query);
      const page = await repositories.search(query.query, principal.repositories ?? null, request, closed);
      return {
        ...presentPage(context, listing, page, presenter(repository)),
        failures: page.failures.map(({ gitProvider, failure }) => (
          { git_provider: gitProvider, code: failure.code, detail: sentenceOfFailure(failure) }
        )),
      };
    },
  }),
  operation('get', '/api/v1/repositories/{repository_name}/branches', {
    tag: 'Repositories',
    operationId: 'list_repository_branches',
    summary: 'List the branches of a repository',
    description: 'In the order of the git host; GitLab and local git sort by name. An empty repository has none.',
    query: z.object(pageQuery),
    success: { status: 200, description: 'A page of branches.', schema: pageSchema(branch, 'BranchPage') },
    failures: ['repository_not_found', 'listing_unsupported', ...gitProviderFailures],
    handle: async (context, { params: { repository_name: name }, query }) => {
      const { skep: { repositories }, principal, closed } = context;
      return await readPage(context, `branches/${name}`, query, (page) =>
        repositories.branches(name, principal.repositories ?? null, page, closed), presenter(branch));
    },
  }),
];
