import { KeyRefusal } from '../../domain/api-key.ts';
import type { Principal } from '../../domain/principal.ts';
import { clientAddress } from './authentication.ts';
import type { RequestContext } from './request-context.ts';
import type { AnyProblem } from './problems.ts';

const maxLoggedPath = 200;

/** Returns the key of a request: that of the caller, or a known one that was refused. */
export function keyFields(caller: Principal | null, problem: AnyProblem | null) {
  if (!(problem?.cause instanceof KeyRefusal)) return { key_name: caller?.keyName ?? null, user: caller?.userId ?? null };
  const { key: { id, name, userId }, state } = problem.cause;
  return { key_name: name, user: userId, key_id: id, key_state: state };
}

export function logRequest(context: RequestContext): void {
  const { request, response, path, caller, problem, sandboxId } = context;
  const created = response.statusCode === 201 ? response.getHeader('location') : undefined;
  const isSent = response.headersSent || response.statusCode === 101;
  const fields = {
    request_id: context.requestId,
    method: request.method,
    route: context.operation?.path ?? null,
    path: path.length > maxLoggedPath ? `${path.slice(0, maxLoggedPath)}...` : path,
    ...(sandboxId !== null && { sandbox: sandboxId }),
    // The resource that the request created.
    ...(created !== undefined && { created: String(created) }),
    // If the client left before the response, there is none.
    status: isSent ? response.statusCode : null,
    ms: Math.round((performance.now() - context.startedAt) * 100) / 100,
    ...keyFields(caller, problem),
    ...(problem !== null && { code: problem.code }),
    ...(problem?.code === 'internal' && { incident: problem.context.incident }),
    ...(caller === null && { client: clientAddress(request) }),
    ...(!response.writableFinished && response.statusCode !== 101 && { aborted: true }),
  };
  // Probes and scrapers come every few seconds.
  const isRoutine = problem === null && fields.route !== null && ['/health', '/ready', '/metrics'].includes(fields.route);
  context.skep.logger[isRoutine ? 'debug' : 'info'](fields, 'request');
}
