import type { IncomingMessage } from 'node:http';
import type { RouteName } from './faults.ts';
import type { Git } from './git.ts';
import type { HostedRepository } from '../hosted-repositories.ts';

/** A request that was understood. */
export interface Exchange {
  readonly request: IncomingMessage;
  /** The URL of the request. */
  readonly url: URL;
  /** The URLs of the host's own pages and of its API. */
  readonly base: string;
  readonly query: Query;
}

/** A request for something of a project. */
export interface ProjectExchange extends Exchange {
  readonly project: HostedRepository;
  readonly git: Git;
}

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes are sent as they are; anything else as JSON. */
  readonly body: unknown;
}

/** A request to the double. */
export interface RequestLog {
  readonly route: RouteName;
  /** The path and query, as they came over the wire. */
  readonly target: string;
  readonly query: Readonly<Record<string, string>>;
  /** How many other requests were in progress. */
  readonly others: number;
  /** In milliseconds, by the monotonic clock. Without an end if it stalls. */
  readonly began: number;
  ended: number;
}

/** The parameters of a query. Each parameter that is read counts as known. */
export interface Query {
  text(name: string): string | undefined;
  list(name: string): readonly string[];
  number(name: string, fallback: number): number;
  flag(name: string, fallback: boolean): boolean;
}

/** A request that GitLab refuses with a 400, or a mistake that GitLab would ignore. */
export class BadRequest extends Error {}

export function queryOf(parameters: URLSearchParams): Query & { readonly values: Readonly<Record<string, string>>; unknown(): string[] } {
  const taken = new Set<string>();
  const text = (name: string): string | undefined => {
    taken.add(name);
    const values = parameters.getAll(name);
    if (values.length > 1) throw new BadRequest(`${name} is given more than once`);
    return values[0];
  };
  return {
    text,
    list(name) {
      taken.add(name);
      return parameters.getAll(name);
    },
    number(name, fallback) {
      const value = text(name) ?? String(fallback);
      if (!/^\d{1,9}$/u.test(value)) throw new BadRequest(`${name} is invalid`);
      return Number(value);
    },
    flag(name, fallback) {
      const value = text(name) ?? String(fallback);
      if (value !== 'true' && value !== 'false') throw new BadRequest(`${name} is invalid`);
      return value === 'true';
    },
    values: Object.fromEntries(parameters),
    unknown: () => [...parameters.keys()].filter((name) => !taken.has(name)),
  };
}

export function json(body: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status: 200, headers, body };
}

export function refusal(status: number, message: string): Reply {
  return { status, body: { message: `${status} ${message}` } };
}
