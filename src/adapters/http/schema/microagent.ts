import { z } from 'zod';
import type { Microagent } from '../../../domain/microagent.ts';
import { parseRepositoryName } from '../../../domain/repository-name.ts';
import { timestamp, toTimestamp } from './common.ts';

export const microagentResource = z
  .object({
    name: z.string().meta({ description: 'The path below the directory, without its ending.', example: 'deploy/aws' }),
    path: z.string().meta({ description: "Relative to the repository's root.", example: '.skep/microagents/deploy/aws.md' }),
    created_at: timestamp.meta({ description: 'When the earliest commit of the default branch that touches the path was made. RFC 3339, in UTC.' }),
  })
  .meta({ id: 'MicroagentResponse', description: 'A Markdown file in a repository that guides agents.' });

export const microagentList = z.array(microagentResource);

/** A decoded repository name. */
export const repositoryName = z
  .string()
  .superRefine((name, context) => {
    const parsed = parseRepositoryName(name);
    if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.problem });
  })
  .meta({
    description:
      '`owner/name`, `group/subgroup/name` or, for local git, a path below the root; slashes as they are or as `%2F`. ' +
      'A host may stand in front (`github.com/owner/name`) and chooses the provider.',
    example: 'acme/shop',
  });

export const repositoryPath = z.object({ repository_name: repositoryName });

export function presentMicroagent({ name, path, createdAt }: Microagent): z.output<typeof microagentResource> {
  return { name, path, created_at: toTimestamp(createdAt) };
}
