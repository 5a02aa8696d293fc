import type { Clock } from '../../../ports/clock.ts';
import type { Answer } from './answer.ts';
import { rateLimited, tooHeavy, unauthorized } from './failures.ts';
import { parseJson } from './parse.ts';
import { waitOf } from './rate-limit.ts';
import { GraphqlAnswer, type GraphqlErrors } from './schema.ts';
import type { Transport } from './transport.ts';

export interface GraphqlQuery {
  readonly text: string;
  /** Whatever comes from outside goes in here, never into the text. */
  readonly variables: Readonly<Record<string, unknown>>;
  readonly what: string;
}

export interface GraphqlResult {
  readonly data: unknown;
  /** Those that the caller has to make sense of. */
  readonly errors: GraphqlErrors;
}

export interface Graphql {
  /** Fails with a failure that `isTooHeavy` recognises where a smaller query may do. */
  ask(query: GraphqlQuery, signal: AbortSignal): Promise<GraphqlResult>;
}

const heavyTypes: ReadonlySet<string | undefined> = new Set(['RESOURCE_LIMITS_EXCEEDED', 'MAX_NODE_LIMIT_EXCEEDED']);
const forbiddenTypes: ReadonlySet<string | undefined> = new Set(['FORBIDDEN', 'INSUFFICIENT_SCOPES']);

/** `place` is the URL of GraphQL, or its path below that of the REST API. */
export function createGraphql(transport: Transport, place: string, clock: Clock): Graphql {
  return {
    async ask({ text, variables, what }, signal) {
      const parameters = { query: text, variables };
      const answer = await transport.send({ route: `POST ${place}`, parameters, divisible: true }, signal);
      const { data, errors = [] } = parseJson(GraphqlAnswer, answer.text, what);
      if (errors.some(({ type }) => type === 'RATE_LIMITED' || type === 'RATE_LIMIT')) throw limited(answer);
      if (errors.some(({ type, message }) => heavyTypes.has(type) || gaveUp(type, message))) throw tooHeavy();
      if (errors.some(({ type }) => forbiddenTypes.has(type))) throw unauthorized();
      return { data, errors };
    },
  };

  function limited({ headers }: Answer): Error {
    const waitMs = waitOf(headers, clock);
    transport.closeFor(waitMs);
    return rateLimited(waitMs);
  }
}

/** GitHub says so of a query that it has worked at for too long, and gives the error no type. */
function gaveUp(type: string | undefined, message: string): boolean {
  return type === undefined && /something went wrong|timed? ?out|couldn't respond/iu.test(message);
}
