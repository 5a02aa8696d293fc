import { clientAddress } from './authentication.ts';
import type { RequestContext } from './request-context.ts';

const maxLoggedPath = 200;

export function logRequest(context: RequestContext): void {
  const { request, response, path, caller, problem } = context;
  const isSent = response.headersSent || response.statusCode === 101;
  const fields = {
    request_id: context.requestId,
    method: request.method,
    route: context.operation?.path ?? null,
    path: path.length > maxLoggedPath ? `${path.slice(0, maxLoggedPath)}...` : path,
    // If the client left before the response, there is none.
    status: isSent ? response.statusCode : null,
    ms: Math.round((performance.now() - context.startedAt) * 100) / 100,
    key_name: caller?.keyName ?? null,
    user: caller?.userId ?? null,
    ...(problem !== null && { code: problem.code }),
    ...(problem?.code === 'internal' && { incident: problem.context.incident }),
    ...(caller === null && { client: clientAddress(request) }),
    ...(!response.writableFinished && response.statusCode !== 101 && { aborted: true }),
  };
  // Probes and scrapers come every few seconds.
  const isRoutine = problem === null && fields.route !== null && ['/health', '/ready', '/metrics'].includes(fields.route);
  context.skep.logger[isRoutine ? 'debug' : 'info'](fields, 'request');
}
