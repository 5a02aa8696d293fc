import { type ClientOptions, Connection } from './connection.ts';
import { Conversations } from './conversations.ts';
import { type EventOptions, followEvents } from './event-stream.ts';
import type { Event } from './openapi.ts';
import { Sandboxes } from './sandboxes.ts';

export type { AttachOptions, Attachment } from './attachment.ts';
export type { OutputPart } from './attachment-messages.ts';
export type {
  Answer, CallOptions, ClientOptions, ClientSocket, Item, PageRoute, RequestArguments, RequestInput, Route,
} from './connection.ts';
export type { Conversation, Conversations } from './conversations.ts';
export type { EventOptions } from './event-stream.ts';
export type { CommandLine, Execution, Executions, Finished, OutputOptions, RunOptions } from './executions.ts';
export { type FailureCode, type FailureContexts, failureIn, isFailure, SkepError } from './failures.ts';
export type { Files, ReadOptions, WriteOptions, WrittenFile } from './files.ts';
export type * as api from './openapi.ts';
export type { FollowOptions } from './reconnection.ts';
export type { Sandbox, Sandboxes, StartOptions } from './sandboxes.ts';

/** A client of a server's HTTP API. Every failure throws a `SkepError`, or the reason of the given signal. */
export interface SkepClient extends Pick<Connection, 'url' | 'headers' | 'request' | 'stream' | 'items'> {
  readonly sandboxes: Sandboxes;
  readonly conversations: Conversations;
  /** Yields events in order. Reconnects after a lost connection. */
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
