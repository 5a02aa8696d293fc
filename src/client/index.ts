import { type Answer, type ClientOptions, Connection, type Item, type PageRoute, type RequestArguments, type Route } from './connection.ts';
import { Conversations } from './conversations.ts';
import { type EventOptions, followEvents } from './event-stream.ts';
import type { Event } from './openapi.ts';
import { Sandboxes } from './sandboxes.ts';

export type { AttachOptions, Attachment, OutputPart } from './attachment.ts';
export type {
  Answer, CallOptions, ClientOptions, ClientSocket, Item, PageRoute, RequestArguments, RequestInput, Route,
} from './connection.ts';
export type { Conversation, Conversations } from './conversations.ts';
export type { EventOptions } from './event-stream.ts';
export type { CommandLine, Execution, Executions, Finished, OutputOptions, RunOptions } from './executions.ts';
export { type FailureCode, type FailureContexts, failureIn, isFailure, SkepError } from './failures.ts';
export type { Files, ReadOptions, WriteOptions } from './files.ts';
export type * as api from './openapi.ts';
export type { FollowOptions } from './reconnection.ts';
export type { Sandbox, Sandboxes, StartOptions } from './sandboxes.ts';

/** The HTTP API of a server. Whatever fails throws a `SkepError`, or the reason of the signal that was given. */
export interface SkepClient {
  readonly url: string;
  /** With the key, for requests that are made otherwise. */
  readonly headers: Readonly<Record<string, string>>;
  readonly sandboxes: Sandboxes;
  readonly conversations: Conversations;
  /** Sends any request of the API: `request('GET /api/v1/sandboxes/{id}', { path: { id } })`. */
  request<R extends Route>(route: R, ...input: RequestArguments<R>): Promise<Answer<R>>;
  /** Sends a request whose answer may be bytes, and returns that itself: `.text()`, or `.body` for what is large or goes on. */
  stream<R extends Route>(route: R, ...input: RequestArguments<R>): Promise<Response>;
  /** Yields the items of all pages of a listing. */
  items<R extends PageRoute>(route: R, ...input: RequestArguments<R>): AsyncGenerator<Item<R>, void>;
  /** Yields what happens, in order, also when the connection is lost in between. */
  events(options?: EventOptions): AsyncGenerator<Event, void>;
}

export function createClient(options: ClientOptions): SkepClient {
  const connection = new Connection(options);
  return {
    url: connection.url,
    headers: connection.headers,
    sandboxes: new Sandboxes(connection),
    conversations: new Conversations(connection),
    request: (route, ...input) => connection.request(route, ...input),
    stream: (route, ...input) => connection.stream(route, ...input),
    items: (route, ...input) => connection.items(route, ...input),
    events: (given = {}) => followEvents(connection, given),
  };
}
