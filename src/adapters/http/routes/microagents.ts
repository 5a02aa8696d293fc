import { z } from 'zod';
import { sentenceOf } from '../../shared/status-and-error-messages.ts';
import type { Microagent } from '../../../domain/microagent.ts';
import { parseRepositoryName } from '../../../domain/repository-name.ts';
import { timestamp, toTimestamp } from '../common-schemas.ts';
import { gitProviderFailures, noInput, operation } from '../operation.ts';

const microagentResource = z
  .object({
    name: z.string().meta({ description: 'The path below the directory, without its ending.', example: 'deploy/aws' }),
    path: z.string().meta({ description: "Relative to the repository's root.", example: '.skep/microagents/deploy/aws.md' }),
    created_at: timestamp.meta({
      description: 'When the earliest commit of the default branch that touches the path was made. RFC 3339, in UTC.',
    }),
  })
  .meta({ id: 'MicroagentResponse', description: 'A Markdown file in a repository that guides agents.' });

export const repositoryName = z
  .string()
  .superRefine((name, context) => {
    const parsed = parseRepositoryName(name);
    if (!parsed.ok) context.addIssue({ code: 'custom', message: sentenceOf({ code: 'repository_name', problem: parsed.problem }) });
  })
  .meta({
    description:
      '`owner/name`, `group/subgroup/name` or, for local git, a path below the root; slashes as they are or as `%2F`. ' +
      'A host may stand in front (`github.com/owner/name`) and chooses the provider.',
    example: 'acme/shop',
  });

function presentMicroagent({ name, path, createdAt }: Microagent): z.output<typeof microagentResource> {
  return { name, path, created_at: toTimestamp(createdAt) };
}

export const microagentOperations = [
  operation({
    ...noInput,
    method: 'get',
    path: '/api/user/repository/{repository_name}/microagents',
    operationId: 'get_repository_microagents_api_user_repository__repository_name__microagents_get',
    tag: 'Microagents',
    summary: 'List the microagents of a repository',
    description:
      'Sorted by path, from the default branch. A repository without the directory, and an empty one, has none. ' +
      'No content of a file is read. If the git host is down, the deployment may serve what the ' +
      'host confirmed before; the header `Age` says how many seconds ago.',
    needsKey: true,
    params: z.object({ repository_name: repositoryName }),
    success: { status: 200, description: 'The microagents.', schema: z.array(microagentResource) },
    failures: ['repository_not_found', ...gitProviderFailures],
    handle: async (context, { params }) => {
      const { skep, principal, response } = context;
      const patterns = principal.repositories ?? null;
      const { microagents, confirmedAt } = await skep.microagents.listing(params.repository_name, patterns, context.closed);
      if (confirmedAt !== null) response.set('Age', String(Math.max(0, Math.round((skep.clock.now() - confirmedAt) / 1000))));
      return microagents.map(presentMicroagent);
    },
  }),
];
