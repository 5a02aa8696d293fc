import { operation, plain } from '../operation.ts';
import { microagentList, presentMicroagent, repositoryPath } from '../schema/microagent.ts';

export const microagentOperations = [
  operation({
    ...plain,
    method: 'get',
    path: '/api/user/repository/{repository_name}/microagents',
    operationId: 'get_repository_microagents_api_user_repository__repository_name__microagents_get',
    tag: 'Microagents',
    summary: 'List the microagents of a repository',
    description:
      'Sorted by path, from the default branch. A repository without the directory, and an empty one, has none. ' +
      'No content of a file is read. Where the deployment serves what a host that is down confirmed a while ago, the ' +
      'header `Age` says how many seconds ago.',
    needsKey: true,
    params: repositoryPath,
    success: { status: 200, description: 'The microagents.', schema: microagentList },
    failures: ['repository_not_found', 'provider_unauthorized', 'provider_failed', 'provider_rate_limited', 'provider_timeout'],
    handle: async (call, { params }) => {
      const { microagents, confirmedAt } = await call.skep.microagents.listing(params.repository_name, call.signal());
      const age = confirmedAt === null ? null : Math.max(0, Math.round((call.skep.clock.now() - confirmedAt) / 1000));
      return { value: microagents.map(presentMicroagent), headers: age === null ? {} : { Age: String(age) } };
    },
  }),
];
