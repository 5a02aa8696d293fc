import { clientAddress } from './authentication.ts';
import type { RequestContext } from './request-context.ts';

const maxLogged = 200;

function shortened(text: string): string {
  return text.length > maxLogged ? `${text.slice(0, maxLogged)}...` : text;
}

export function logRequest(context: RequestContext): void {
  const { request, response, path, caller, problem, sandboxId } = context;
  const created = response.statusCode === 201 ? response.getHeader('location') : undefined;
  const isSent = response.headersSent || response.statusCode === 101;
  const fields = {
    request_id: context.requestId,
    method: request.method,
    route: context.operation?.path ?? null,
    path: shortened(path),
    ...(sandboxId !== null && { sandbox: sandboxId }),
    // The resource that the request created.
    ...(created !== undefined && { created: String(created) }),
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
