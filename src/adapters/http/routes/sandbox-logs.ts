import { z } from 'zod';
import { flag, idPath, wholeNumber } from '../common-schemas.ts';
import { byteStream, operation, StreamedBody } from '../operation.ts';

const maxTailBytes = 1 << 20;

const logQuery = z.object({
  tail_bytes: wholeNumber(0, maxTailBytes).optional()
    .meta({ description: 'Only the last bytes, at most this many. Default: everything that is kept.' }),
  follow: flag('Continue until the sandbox stops.'),
});

export const logOperation = operation({
  tag: 'Sandboxes',
  method: 'get',
  path: '/api/v1/sandboxes/{id}/logs',
  operationId: 'get_sandbox_logs',
  summary: 'Read the log of a sandbox',
  description:
    "The standard output and error of the sandbox's own command. Values of secrets are masked. The bytes need not be UTF-8. " +
    'Does not resume a paused sandbox. Empty if the runtime has no log of the sandbox.',
  params: idPath,
  query: logQuery,
  success: { status: 200, description: 'The log.', schema: byteStream, media: 'text/plain; charset=utf-8' },
  failures: ['sandbox_not_found', 'runtime_unavailable', 'runtime_timeout'],
  handle: async (context, { params, query: { tail_bytes: tailBytes, follow = false } }) => {
    const { skep, scope } = context;
    const ends = context.openStream();
    const request = { follow, ...(tailBytes !== undefined && { tailBytes }) };
    return new StreamedBody(await skep.sandboxes.logs(scope, params.id, request, ends), ends);
  },
});
