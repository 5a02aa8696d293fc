import { Failure, isFailure, type AnyFailure, type FailureCode } from '../../domain/failure.ts';
import type { Deployment } from './deployment.ts';
import { Exchange, type Incoming, type Outgoing } from './exchange.ts';
import type { Operation, Reply, StreamReply } from './operation.ts';
import type { Answer, StreamAnswer } from './response/answer.ts';
import { isListed } from './response/failure-table.ts';
import { jsonOf } from './response/json.ts';
import { answerOfFailure } from './response/problem.ts';
import { sendStream } from './response/send-stream.ts';
import { send } from './response/send.ts';
import { clientOf } from './guards/address.ts';

const json = 'application/json; charset=utf-8';

/** Answers requests; the mount is the path that was taken off theirs. */
export type Handler = (request: Incoming, response: Outgoing, mount: string) => void;

/** Answers requests for an operation: with what it replies, or with the failure in the way. */
export function answering(deployment: Deployment, operation: Operation): Handler {
  return (request, response, mount) => {
    void serve(new Exchange(deployment, operation, request, response, mount), async (exchange) => {
      if (operation.needsKey) await admit(exchange);
      if (operation.changes !== undefined && exchange.principal.access === 'read') {
        throw new Failure('forbidden', { action: operation.changes });
      }
      return answerOf(operation, await operation.run(exchange));
    });
  };
}

/** Answers requests with the failure; whoever has no key where one is needed does not learn that much. */
export function refusing(deployment: Deployment, failure: Failure, needsKey: boolean): Handler {
  return (request, response, mount) => {
    void serve(new Exchange(deployment, null, request, response, mount), async (exchange) => {
      if (needsKey) await admit(exchange);
      throw failure;
    });
  };
}

async function serve(exchange: Exchange, work: (exchange: Exchange) => Promise<Answer | StreamAnswer>): Promise<void> {
  let failure: AnyFailure | null = null;
  let answer: Answer | StreamAnswer;
  try {
    answer = await work(exchange);
  } catch (error) {
    failure = listed(exchange, error);
    answer = answerOfFailure(failure);
  }
  if ('body' in answer) {
    log(exchange, answer.status, send(exchange, answer), failure);
    return;
  }
  let sent = false;
  try {
    sent = await sendStream(exchange, answer);
  } catch (error) {
    failure = listed(exchange, error);
  }
  log(exchange, answer.status, sent, failure);
}

async function admit(exchange: Exchange): Promise<void> {
  const { logins, limitRequests } = exchange.deployment;
  const principal = await logins.authenticate(exchange.request);
  exchange.caller = principal;
  if (limitRequests !== null) await limitRequests(principal);
}

function answerOf({ success }: Operation, reply: Reply<unknown> | StreamReply): Answer | StreamAnswer {
  if ('parts' in reply) return { status: success.status, media: success.media ?? json, headers: reply.headers ?? {}, parts: reply.parts };
  const { value, status = success.status, headers = {} } = reply;
  if (value === undefined) return { status, body: null, media: '', headers };
  const { media = json } = success;
  return { status, body: media !== json && typeof value === 'string' ? value : jsonOf(value), media, headers };
}

/** The failure that is told; what nobody foresaw is told by a number that the log has too. */
function listed({ response, requestId, deployment }: Exchange, error: unknown): AnyFailure {
  const { logger, random } = deployment.skep;
  if (isFailure(error) && isListed(error)) {
    if (isServers(error.code)) logger.warn({ request_id: requestId, code: error.code, error }, 'request failed');
    return error;
  }
  const incident = random.id('inc');
  // What breaks because the client is gone is no incident.
  if (!response.destroyed) logger.error({ request_id: requestId, incident, error }, 'request failed unforeseen');
  return new Failure('internal', { incident }, { cause: error });
}

function isServers(code: FailureCode): boolean {
  return code === 'internal' || /^(?:provider|runtime|store)_/.test(code);
}

function log(exchange: Exchange, status: number, sent: boolean, failure: AnyFailure | null): void {
  const { request, path, operation, caller, requestId, startedAt } = exchange;
  const fields = {
    request_id: requestId,
    method: request.method,
    route: operation?.path ?? null,
    path: path.length > 200 ? `${path.slice(0, 200)}...` : path,
    status,
    ms: Math.round((performance.now() - startedAt) * 100) / 100,
    key_name: caller?.keyName ?? null,
    user: caller?.userId ?? null,
    ...(failure !== null && { code: failure.code }),
    ...(failure?.code === 'internal' && { incident: failure.context.incident }),
    ...((status === 401 || status === 429) && { client: clientOf(request) }),
    ...(!sent && { aborted: true }),
  };
  exchange.skep.logger.info(fields, 'request');
}
