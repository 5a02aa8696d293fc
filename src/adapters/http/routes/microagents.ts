import { z } from 'zod';
import { sentenceOf } from '../../shared/status-and-error-messages.ts';
import type { MicroagentContent } from '../../../application/microagents/microagents.ts';
import { parseRepositoryName } from '../../../domain/repository-name.ts';
import { text, timestamp } from '../common-schemas.ts';
import { gitProviderFailures, operation } from '../operation.ts';
import { presenter } from '../presenter.ts';
import type { RequestContext } from '../request-context.ts';

const microagentFields = {
  name: z.string().meta({ description: 'The path below the directory, without its ending.', example: 'deploy/aws' }),
  path: z.string().meta({ description: "Relative to the repository's root.", example: '.skep/microagents/deploy/aws.md' }),
  created_at: timestamp.meta({
    description: 'When the earliest commit of the default branch that touches the path was made. RFC 3339, in UTC.',
  }),
};

const microagentResource = z
  .object(microagentFields)
  .meta({ id: 'MicroagentResponse', description: 'A Markdown file in a repository that guides agents.' });

const frontMatterProblem = z
  .object({
    code: z.string().meta({ examples: ['not_yaml', 'triggers'], description: 'For programs. New codes may come with any version.' }),
    detail: z.string().meta({ description: 'What is wrong, as a sentence.' }),
    line: z.int().min(1).nullable().meta({ description: 'The line of the file; null if it is not one line.' }),
  })
  .meta({ id: 'FrontMatterProblem' });

const microagentContentResource = z
  .object({
    ...microagentFields,
    content: z.string().meta({
      description:
        'The text after the front matter; the whole text if there is none, or it can not be read. What is not UTF-8 is U+FFFD, and ' +
        'a byte order mark is left out.',
    }),
    triggers: z.array(z.string()).meta({ description: 'Words that call the microagent; empty if the front matter has none.' }),
    front_matter: z.record(z.string(), z.unknown()).nullable().meta({
      description: 'The mapping between the two lines `---` at the beginning of the file; null if there is none, or it can not be read.',
    }),
    front_matter_problem: frontMatterProblem.nullable().meta({ description: 'What is wrong with the front matter.' }),
    git_provider: z.string().meta({ example: 'github' }),
  })
  .meta({ id: 'MicroagentContentResponse', description: 'A microagent with its content.' });

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

const presentMicroagent = presenter(microagentResource);
const toContent = presenter(microagentContentResource);

function presentContent(read: MicroagentContent): z.output<typeof microagentContentResource> {
  const { frontMatterProblem: reason } = read;
  return toContent({
    ...read,
    frontMatterProblem: reason === null ? null : { code: reason.problem, detail: sentenceOf(reason), line: reason.line },
  });
}

function setAge({ skep, response }: RequestContext, confirmedAt: number | null): void {
  if (confirmedAt !== null) response.set('Age', String(Math.max(0, Math.round((skep.clock.now() - confirmedAt) / 1000))));
}

export const microagentOperations = [
  operation({
    method: 'get',
    path: '/api/user/repository/{repository_name}/microagents',
    operationId: 'get_repository_microagents_api_user_repository__repository_name__microagents_get',
    tag: 'Microagents',
    summary: 'List the microagents of a repository',
    description:
      'Sorted by path, from the default branch. A repository without the directory, and an empty one, has none. ' +
      'No content of a file is read. If the git host is down, the deployment may serve what the ' +
      'host confirmed before; the header `Age` says how many seconds ago.',
    params: z.object({ repository_name: repositoryName }),
    success: { status: 200, description: 'The microagents.', schema: z.array(microagentResource) },
    failures: ['repository_not_found', ...gitProviderFailures],
    handle: async (context, { params }) => {
      const { skep, principal } = context;
      const patterns = principal.repositories ?? null;
      const { microagents, confirmedAt } = await skep.microagents.listing(params.repository_name, patterns, context.closed);
      setAge(context, confirmedAt);
      return microagents.map((microagent) => presentMicroagent(microagent));
    },
  }),
  operation({
    method: 'get',
    path: '/api/user/repository/{repository_name}/microagents/content',
    operationId: 'get_microagent_content',
    tag: 'Microagents',
    summary: 'Read a microagent of a repository',
    description:
      'Its content and front matter, from the default branch. Only what the list of microagents shows is found. Front matter that is ' +
      'broken is reported, and is no failure. A file of more than 1 MiB is a failure. The header `Age` is as in the list.',
    params: z.object({ repository_name: repositoryName }),
    query: z.object({
      file_path: text(4096).min(1).meta({ description: 'The `path` that the list shows.', example: '.skep/microagents/deploy/aws.md' }),
    }),
    success: { status: 200, description: 'The microagent.', schema: microagentContentResource },
    failures: ['repository_not_found', 'file_not_found', ...gitProviderFailures],
    handle: async (context, { params, query }) => {
      const patterns = context.principal.repositories ?? null;
      const read = await context.skep.microagents.read(params.repository_name, query.file_path, patterns, context.closed);
      setAge(context, read.confirmedAt);
      return presentContent(read);
    },
  }),
];
