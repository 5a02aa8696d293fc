import { clientAddress } from './authentication.ts';
import type { RequestContext } from './request-context.ts';

const maxLoggedPath = 200;

export function logRequest(context: RequestContext): void {
  const { request, response, path, caller, problem } = context;
  const status = response.statusCode;
  const fields = {
    request_id: context.requestId,
    method: request.method,
    route: context.operation?.path ?? null,
    path: path.length > maxLoggedPath ? `${path.slice(0, maxLoggedPath)}...` : path,
    status,
    ms: Math.round((performance.now() - context.startedAt) * 100) / 100,
    key_name: caller?.keyName ?? null,
    user: caller?.userId ?? null,
    ...(problem !== null && { code: problem.code }),
    ...(problem?.code === 'internal' && { incident: problem.context.incident }),
    ...((status === 401 || status === 429) && { client: clientAddress(request) }),
    ...(!response.writableFinished && status !== 101 && { aborted: true }),
  };
  // Health checks come every few seconds.
  const isHealthCheck = fields.route === '/health' || fields.route === '/ready';
  context.skep.logger[isHealthCheck ? 'debug' : 'info'](fields, 'request');
}
