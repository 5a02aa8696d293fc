import { z } from 'zod';
import type { FailureCode } from '../../domain/failure.ts';
import type { RequestContext } from './request-context.ts';
import { parsed, queryReader, readHeaders, readPath } from './request-input.ts';

export const tags = ['Microagents', 'Conversations', 'Events', 'Sandboxes', 'Sandbox specs', 'Service'] as const;

/** A form that an answer may have. The schema of no body is {@link noBody}. */
export interface ResponseForm<R extends z.ZodType = z.ZodType> {
  readonly status: number;
  readonly description: string;
  readonly schema: R;
  /** The media type; JSON unless given. */
  readonly media?: string;
  readonly headers?: z.ZodObject;
}

/** What a handler answers; the status is that of its success unless given. */
export interface Reply<T> {
  readonly value: T;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a handler answers part by part. */
export interface StreamReply {
  readonly parts: AsyncIterable<string>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The failures of a git provider that any operation on a repository may have. */
export const gitProviderFailures = ['provider_unauthorized', 'provider_failed', 'provider_rate_limited', 'provider_timeout'] as const;

/** An operation of the route table, as its schemas declare and document it. */
interface Described<
  P extends z.ZodObject = z.ZodObject,
  Q extends z.ZodObject = z.ZodObject,
  H extends z.ZodObject = z.ZodObject,
  B extends z.ZodType = z.ZodType,
  R extends z.ZodType = z.ZodType,
> {
  readonly method: 'get' | 'post' | 'delete';
  /** The path template, with `{name}` for a parameter. The value of `{repository_name}` may hold slashes. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: (typeof tags)[number];
  readonly summary: string;
  readonly description?: string;
  readonly needsKey: boolean;
  /** What it changes, as the end of "may not ..."; a key that may only read is refused. */
  readonly changes?: string;
  /** The failures that are its own; those of every operation of its kind are added. */
  readonly failures: readonly FailureCode[];
  /** An answer besides the success that is no failure. */
  readonly otherwise?: ResponseForm;
  readonly params: P;
  readonly query: Q;
  readonly headers: H;
  readonly body: B;
  readonly success: ResponseForm<R>;
}

type MaybePromise<T> = T | Promise<T>;

interface Input<P extends z.ZodType, Q extends z.ZodType, H extends z.ZodType, B extends z.ZodType> {
  readonly params: z.output<P>;
  readonly query: z.output<Q>;
  readonly headers: z.output<H>;
  readonly body: z.output<B>;
}

export const noFields = z.object({});

/** A body that is not read, or not sent. */
export const noBody = z.undefined();

/** What is spread into the declaration of an operation that takes nothing, or not everything. */
export const noInput = { params: noFields, query: noFields, headers: noFields, body: noBody };

export interface Operation extends Described {
  /** Validates all but the body. Throws `invalid_request`. Returns what validates the body and then does the operation. */
  readonly prepare: (context: RequestContext, pathParameters: Readonly<Record<string, string>>) => (body: unknown) => Promise<AnyReply>;
}

export type AnyReply = Reply<unknown> | StreamReply;

/** Declares an operation; the schemas type what its handler gets and returns. */
export function operation<P extends z.ZodObject, Q extends z.ZodObject, H extends z.ZodObject, B extends z.ZodType, R extends z.ZodType>(
  declaration: Described<P, Q, H, B, R> & {
    readonly handle: (context: RequestContext, input: Input<P, Q, H, B>) => MaybePromise<Reply<z.output<R>> | StreamReply>;
  },
): Operation {
  const { handle, ...described } = declaration;
  const readQuery = queryReader(declaration.query);
  return {
    ...described,
    prepare: (context, pathParameters) => {
      const params = readPath(declaration.params, pathParameters);
      const query = readQuery(context.query);
      const headers = readHeaders(declaration.headers, context.request.headers);
      return async (body) => await handle(context, { params, query, headers, body: parsed(declaration.body, 'body', body) });
    },
  };
}
