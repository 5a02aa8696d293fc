import { z } from 'zod';
import { sentenceOf } from '../../shared/failure-sentences.ts';
import type { MicroagentContent } from '../../../application/microagents/microagents.ts';
import { text, timestamp } from '../common-schemas.ts';
import { gitProviderFailures, operation } from '../operation.ts';
import { presenter } from '../presenter.ts';

const microagentFields = {
  name: z.string().meta({ description: 'The path below the microagents directory, without the file extension.', example: 'deploy/aws' }),
  path: z.string().meta({ description: "Relative to the repository's root.", example: '.skep/microagents/deploy/aws.md' }),
  created_at: timestamp.describe('The time of the first commit of the default branch that has the path. RFC 3339, in UTC.'),
};

const microagentResource = z
  .object(microagentFields)
  .meta({ id: 'MicroagentResponse', description: 'A Markdown file in a repository with instructions for agents.' });

const frontMatterProblem = z
  .object({
    code: z.string().meta({ examples: ['not_yaml', 'triggers'], description: 'The problem, for programs. Any version can add codes.' }),
    detail: z.string().describe('What is wrong, as a sentence.'),
    line: z.int().min(1).nullable().describe('The line of the file. Null if the problem has no single line.'),
  })
  .meta({ id: 'FrontMatterProblem' });

const microagentContentResource = z
  .object({
    ...microagentFields,
    content: z.string().describe(
      'The text after the front matter, or the whole text if there is no valid front matter. Bytes that are not UTF-8 are replaced by ' +
      'U+FFFD. A byte order mark is removed.',
    ),
    triggers: z.array(z.string()).describe('Words in a message that activate it. Empty if the front matter has none.'),
    front_matter: z.record(z.string(), z.unknown()).nullable()
      .describe('The YAML mapping between two `---` lines at the beginning of the file. Null if there is no valid one.'),
    front_matter_problem: frontMatterProblem.nullable().describe('What is wrong with the front matter.'),
    git_provider: z.string().meta({ example: 'github' }),
  })
  .meta({ id: 'MicroagentContentResponse', description: 'A microagent with its content.' });

const presentMicroagent = presenter(microagentResource);
const presentContent = presenter(microagentContentResource, ({ frontMatterProblem: reason, ...same }: MicroagentContent) => ({
  ...same,
  frontMatterProblem: reason === null ? null : { code: reason.problem, detail: sentenceOf(reason), line: reason.line },
}));

export const microagentOperations = [
  operation('get', '/api/user/repository/{repository_name}/microagents', {
    operationId: 'get_repository_microagents_api_user_repository__repository_name__microagents_get',
    tag: 'Microagents',
    summary: 'List the microagents of a repository',
    description:
      'Sorted by path, from the default branch. Empty if the repository is empty or has no microagents directory. ' +
      'The content of the files is not read.',
    success: { status: 200, description: 'The microagents.', schema: z.array(microagentResource) },
    failures: ['repository_not_found', ...gitProviderFailures],
    handle: async (context, { params }) => {
      const patterns = context.principal.repositories ?? null;
      const microagents = await context.skep.microagents.list(params.repository_name, patterns, context.closed);
      return microagents.map((microagent) => presentMicroagent(microagent));
    },
  }),
  operation('get', '/api/user/repository/{repository_name}/microagents/content', {
    operationId: 'get_microagent_content',
    tag: 'Microagents',
    summary: 'Read a microagent of a repository',
    description:
      'Its content and front matter, from the default branch. Finds only files that the list of microagents shows. Invalid front ' +
      'matter is no failure: it is reported in `front_matter_problem`. A file of more than 1 MiB is a failure.',
    query: z.object({
      file_path: text(4096).min(1).meta({ description: 'The `path` that the list shows.', example: '.skep/microagents/deploy/aws.md' }),
    }),
    success: { status: 200, description: 'The microagent.', schema: microagentContentResource },
    failures: ['repository_not_found', 'file_not_found', ...gitProviderFailures],
    handle: async (context, { params, query }) => {
      const patterns = context.principal.repositories ?? null;
      return presentContent(await context.skep.microagents.read(params.repository_name, query.file_path, patterns, context.closed));
    },
  }),
];
