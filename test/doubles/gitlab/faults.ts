import type { ServerResponse } from 'node:http';
import type { Reply } from './request.ts';

/** What the double does instead of a normal response. */
export type Fault =
  /** Refuses because of the rate of requests, like the throttle in front of the application. */
  | { readonly kind: 'throttle'; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }
  /** Sends no response. */
  | { readonly kind: 'stall' }
  /** Closes the connection before, or in the middle of the body. */
  | { readonly kind: 'reset' }
  | { readonly kind: 'cut' }
  /** Responds with this body. Default media type: JSON. */
  | { readonly kind: 'body'; readonly text: string; readonly contentType?: string }
  /** Responds normally, with other headers. */
  | { readonly kind: 'headers'; readonly headers: Readonly<Record<string, string>> };

/** The requests that a fault affects. */
interface FaultPlan {
  readonly fault: Fault;
  /** Default: all. */
  readonly route?: RouteName;
  /** Default: all. */
  readonly times?: number;
  /** How many requests get a normal response first. */
  readonly after?: number;
}

export type RouteName = 'project' | 'commit' | 'commits' | 'mergeBase' | 'tree' | 'blob' | 'version' | 'mergeRequests' | 'mergeRequest' | 'search' | 'branches';

export interface Faults {
  add(plan: FaultPlan): void;
  clear(): void;
  /** Returns the fault for a request to this route. */
  next(route: RouteName): Fault | null;
}

export function createFaults(): Faults {
  const plans: { readonly plan: FaultPlan; seen: number }[] = [];
  return {
    add: (plan) => void plans.push({ plan, seen: 0 }),
    clear: () => void plans.splice(0),
    next(route) {
      for (const each of plans) {
        const { fault, times = Number.POSITIVE_INFINITY, after = 0 } = each.plan;
        if (each.plan.route !== undefined && each.plan.route !== route) continue;
        each.seen += 1;
        if (each.seen > after && each.seen <= after + times) return fault;
      }
      return null;
    },
  };
}

/** Sends the response, or does what the fault says instead. */
export function send(response: ServerResponse, reply: Reply, fault: Fault | null): void {
  switch (fault?.kind) {
    case undefined:
      return write(response, reply);
    case 'headers':
      return write(response, { ...reply, headers: { ...reply.headers, ...fault.headers } });
    case 'throttle':
      response.writeHead(429, { 'content-type': 'text/plain', ...fault.headers });
      response.end('Retry later\n');
      return undefined;
    case 'status':
      return write(response, { status: fault.status, headers: fault.headers ?? {}, body: fault.body ?? { message: `${fault.status} Fault` } });
    case 'stall':
      return undefined;
    case 'reset':
      response.socket?.resetAndDestroy();
      return undefined;
    case 'cut': {
      const text = JSON.stringify(reply.body);
      response.writeHead(reply.status, { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) });
      response.write(text.slice(0, Math.floor(text.length / 2)), () => response.socket?.destroy());
      return undefined;
    }
    case 'body':
      response.writeHead(200, { 'content-type': fault.contentType ?? 'application/json' });
      response.end(fault.text);
      return undefined;
  }
}

function write(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(Buffer.isBuffer(body) ? body : JSON.stringify(body));
}
