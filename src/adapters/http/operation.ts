import { z } from 'zod';
import type { Skep } from '../../application/skep.ts';
import type { FailureCode } from '../../domain/failure.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Papers } from './papers.ts';
import type { Readiness } from './readiness.ts';
import { bodyReader, type BodyCarrier } from './request/body.ts';
import { headerReader } from './request/headers.ts';
import { pathReader } from './request/path.ts';
import { queryReader } from './request/query.ts';

export type Method = 'get' | 'post' | 'delete';

export const tags = ['Microagents', 'Conversations', 'Events', 'Sandboxes', 'Sandbox specs', 'Service'] as const;

/** A form that an answer may have. The schema of no body is {@link noBody}. */
export interface ResponseForm<R extends z.ZodType = z.ZodType> {
  readonly status: number;
  readonly description: string;
  readonly schema: R;
  /** `application/json` unless given. */
  readonly media?: string;
  readonly headers?: z.ZodObject;
}

/** A request that reached its operation. */
export interface Call {
  readonly skep: Skep;
  /** Who makes it. Throws in an operation that needs no key. */
  readonly principal: Principal;
  /** As it was sent, without the mount path. */
  readonly path: string;
  /** As it was sent, without the question mark. */
  readonly query: string;
  readonly request: BodyCarrier;
  readonly bodyLimitBytes: number;
  /** Where the router is mounted: `/agents`; empty at the root. */
  readonly mount: string;
  readonly papers: Papers;
  readonly readiness: Readiness;
  /** The path by which clients reach a path of this interface. */
  readonly link: (path: string) => string;
  /** Fires when the client goes away before it was answered. */
  readonly signal: () => AbortSignal;
  /** Fires when the server takes no new work: what would go on for ever ends then. */
  readonly ending: AbortSignal;
}

/** What an operation answers; the status is that of its success unless given. */
export interface Reply<T> {
  readonly value: T;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What an operation answers part by part. */
export interface StreamReply {
  readonly parts: AsyncIterable<string>;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Described {
  readonly method: Method;
  /** The path template, with `{name}` where a value stands. */
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
  /** Answers besides the success that are no failures. */
  readonly otherwise?: ResponseForm;
}

/** What an operation is: the schemas validate, document and type what its handler gets and gives. */
export interface Declaration<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  H extends z.ZodObject,
  B extends z.ZodType,
  R extends z.ZodType,
> extends Described {
  readonly params: P;
  readonly query: Q;
  readonly headers: H;
  readonly body: B;
  readonly success: ResponseForm<R>;
  readonly handle: (
    call: Call,
    input: Input<P, Q, H, B>,
  ) => Promise<Reply<z.output<R>> | StreamReply> | Reply<z.output<R>> | StreamReply;
}

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
export const plain = { params: noFields, query: noFields, headers: noFields, body: noBody };

/** An operation of the route table. */
export interface Operation extends Described {
  readonly params: z.ZodObject;
  readonly query: z.ZodObject;
  readonly headers: z.ZodObject;
  readonly body: z.ZodType;
  readonly success: ResponseForm;
  /** Reads the request and does what is asked. Rejects with the failure. */
  run(call: Call): Promise<Reply<unknown> | StreamReply>;
}

/** Declares an operation. */
export function operation<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  H extends z.ZodObject,
  B extends z.ZodType,
  R extends z.ZodType,
>(declaration: Declaration<P, Q, H, B, R>): Operation {
  const { handle, ...described } = declaration;
  const readParams = pathReader(declaration.path, declaration.params);
  const readQuery = queryReader(declaration.query);
  const readHeaders = headerReader(declaration.headers);
  const readBody = bodyReader(declaration.body);
  return {
    ...described,
    run: async (call) => {
      const { path, query, request, bodyLimitBytes } = call;
      const input = {
        params: readParams(path),
        query: readQuery(query),
        headers: readHeaders(request.headers),
        body: await readBody(request, bodyLimitBytes),
      };
      return await handle(call, input);
    },
  };
}
