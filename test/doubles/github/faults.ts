import type { ServerResponse } from 'node:http';
import { refusal, send, type DoubleRequest, type DoubleResponse } from './request.ts';

/** Handles a request instead of the double. */
export type Fault = (response: ServerResponse, request: DoubleRequest) => void;

export interface FaultPlan {
  readonly act: Fault;
  /** How many requests it affects. Default: all. */
  readonly times?: number;
  readonly when?: (request: DoubleRequest) => boolean;
}

/** The planned faults. */
export interface Faults {
  plan(plan: FaultPlan): void;
  clear(): void;
  next(request: DoubleRequest): Fault | null;
}

export function createFaults(): Faults {
  const plans: { readonly plan: FaultPlan; left: number }[] = [];
  return {
    plan: (plan) => void plans.push({ plan, left: plan.times ?? Number.POSITIVE_INFINITY }),
    clear: () => void plans.splice(0),
    next(request) {
      const found = plans.find(({ plan, left }) => left > 0 && (plan.when?.(request) ?? true));
      if (found === undefined) return null;
      found.left -= 1;
      return found.plan.act;
    },
  };
}

export function answerWith(answer: DoubleResponse): Fault {
  return (response) => send(response, answer);
}

/** A limit, by default the hourly one of an old GitHub Enterprise Server, is used up until `resetSeconds` from now. */
export function primaryLimit(resetSeconds: number, status: 403 | 429 = 403, resource: string | null = null): Fault {
  return (response) => {
    const reset = Math.floor(Date.now() / 1000) + resetSeconds;
    const headers = { date: new Date(Math.floor(Date.now() / 1000) * 1000).toUTCString(), 'x-ratelimit-limit': '5000', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(reset), ...(resource !== null && { 'x-ratelimit-resource': resource }) };
    send(response, { ...refusal(status, 'API rate limit exceeded for user ID 1.'), headers });
  };
}

/** Too many requests at a time; without `retryAfter` the message alone says so. */
export function secondaryLimit(retryAfter: number | null, status: 403 | 429 = 403): Fault {
  const headers: Record<string, string> = retryAfter === null ? {} : { 'retry-after': String(retryAfter) };
  return answerWith({ ...refusal(status, 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.'), headers });
}

/** GraphQL reports its limit with status 200. */
export function graphqlLimit(resetSeconds: number): Fault {
  return (response) => {
    const reset = Math.floor(Date.now() / 1000) + resetSeconds;
    const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(reset) };
    send(response, { status: 200, headers, body: { errors: [{ type: 'RATE_LIMITED', message: 'API rate limit exceeded' }] } });
  };
}

/** GraphQL may also report this limit with status 200. Its documentation names no type for the error. */
export function graphqlSecondaryLimit(retryAfter: number): Fault {
  const errors = [{ message: 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.' }];
  return answerWith({ status: 200, headers: { 'retry-after': String(retryAfter) }, body: { errors } });
}

export const cutConnection: Fault = (response) => void response.socket?.destroy();

/** The connection breaks in the middle of the body. */
export const cutBody: Fault = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
  response.write('{"data":', () => response.socket?.destroy());
};

/** Returns an undocumented body with a status of success. */
export function rubbish(body: unknown): Fault {
  return answerWith({ status: 200, body });
}

export function redirect(location: string, status = 301): Fault {
  return answerWith({ ...refusal(status, 'Moved Permanently'), headers: { location } });
}
