import { z } from 'zod';
import type { FailureCode } from '../../domain/failure.ts';
import { pathParameters } from './common-schemas.ts';
import type { RequestContext } from './request-context.ts';
import { parsed, readHeaders, readPath, readQuery, requireWholeBody } from './request-input.ts';

export const tags = {
  Microagents: 'Files in repositories with instructions for agents.',
  Repositories: 'Lists of repositories and branches.',
  Conversations: 'Conversations with agents. Each runs in a sandbox.',
  Events: 'Everything that happened in conversations and sandboxes, in order.',
  Sandboxes: 'Execution environments that are started, paused and resumed.',
  Executions: 'Commands in sandboxes. They continue if the connection is lost or the server stops.',
  Files: 'Files in sandboxes, also in paused ones.',
  'Sandbox specs': 'Templates from which sandboxes are started.',
  Overview: 'The state and the settings of the deployment.',
  Keys: 'The API keys.',
  Service: 'About the server and the caller.',
} as const;

/** A possible response of an operation. */
export interface ResponseForm<R extends z.ZodType = z.ZodType> {
  readonly status: number;
  readonly description: string;
  /** The schema of the body. If it is missing, there is no body. */
  readonly schema?: R;
  /** The media type. Default: JSON. */
  readonly media?: string;
  readonly headers?: z.ZodObject;
}

/** A response body that is sent part by part. */
export class StreamedBody {
  readonly parts: AsyncIterable<string | Uint8Array>;
  /** Fires when the stream must end, although more parts may follow. */
  readonly ends: AbortSignal;
  /** The media type, if it differs from the operation's success. */
  readonly media: string | undefined;

  constructor(parts: AsyncIterable<string | Uint8Array>, ends: AbortSignal, media?: string) {
    this.parts = parts;
    this.ends = ends;
    this.media = media;
  }
}

/** The git provider failures that any operation on a repository can return. */
export const gitProviderFailures = ['provider_unauthorized', 'provider_failed', 'provider_rate_limited', 'provider_timeout'] as const;

/** The schema of a request part for which an operation declares nothing. */
const emptySchema = z.object({});

type MaybePromise<T> = T | Promise<T>;

type NameIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NameIn<Rest> : never;
/** The parameters that the path names. */
type Params<Path extends string> = string extends Path ? Readonly<Record<string, unknown>>
  : { readonly [Name in NameIn<Path> & keyof typeof pathParameters]: z.output<(typeof pathParameters)[Name]> };

interface Declaration<
  Path extends string = string,
  Q extends z.ZodObject = z.ZodObject,
  H extends z.ZodObject = z.ZodObject,
  B extends z.ZodType = z.ZodType,
  R extends z.ZodType = z.ZodType,
> {
  readonly operationId: string;
  readonly tag: keyof typeof tags;
  readonly summary: string;
  readonly description?: string;
  /** Anyone can call it without a key. */
  readonly isPublic?: true;
  /** Only for keys with the access `admin`. */
  readonly adminOnly?: boolean;
  /** The operation's own failures. The failures common to its kind are added. */
  readonly failures: readonly (FailureCode | 'upgrade_required' | 'origin_forbidden' | 'precondition_failed' | 'range_not_satisfiable')[];
  /** Other responses that are no failure: with another status, or another media type that the client can ask for. */
  readonly otherwise?: readonly ResponseForm[];
  readonly query?: Q;
  readonly headers?: H;
  readonly body?: B;
  /** The handler reads the body itself, as bytes. */
  readonly takesBytes?: true;
  /** Accepts a ticket instead of a key, because browsers can't send headers there. */
  readonly takesTicket?: true;
  readonly success: ResponseForm<R>;
  readonly handle: (
    context: RequestContext,
    input: { readonly params: Params<Path>; readonly query: z.output<Q>; readonly headers: z.output<H>; readonly body: z.output<B> },
  ) => MaybePromise<z.output<R> | StreamedBody>;
}

/** The success of an operation that returns nothing. */
export const noContent = { status: 204, description: 'Done.' };

export const byteStream = z.string().meta({ format: 'binary' });

export interface Operation extends Omit<Declaration, 'handle'> {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** The path template, with `{name}` for a parameter. The value of `{repository_name}` can contain slashes. */
  readonly path: string;
  readonly params?: z.ZodObject;
  /** Parses the request, the body last, performs the operation and returns the result. Throws `invalid_request` before it does anything. */
  readonly perform: (context: RequestContext) => Promise<unknown>;
}

export function alias(original: Operation, path: string, operationId: string): Operation {
  return { ...original, path, operationId, description: `The same as \`${original.path}\`.` };
}

/**
 * Declares an operation. The parameters in the path and the schemas type the handler's input and result. The handler can set a status other
 * than the success status.
 */
export function operation<
  const Path extends string,
  Q extends z.ZodObject = typeof emptySchema,
  H extends z.ZodObject = typeof emptySchema,
  B extends z.ZodType = z.ZodVoid,
  R extends z.ZodType = z.ZodVoid,
>(method: Operation['method'], path: Path, declaration: Declaration<Path, Q, H, B, R>): Operation;
export function operation(method: Operation['method'], path: string, { handle, ...described }: Declaration): Operation {
  const { query = emptySchema, headers = emptySchema, body } = described;
  const schemas: Readonly<Record<string, z.ZodType>> = pathParameters;
  const params = z.object(Object.fromEntries(Object.entries(schemas).filter(([name]) => path.includes(`{${name}}`))));
  return {
    ...described,
    method,
    path,
    ...(path.includes('{') && { params }),
    perform: async (context) => {
      const { request, response, http } = context;
      const input = {
        params: readPath(params, request.params),
        query: readQuery(query, context.query),
        headers: readHeaders(headers, request.headers),
      };
      if (described.takesBytes === true) requireWholeBody(request);
      return await handle(context, { ...input, body: body && parsed(body, 'body', await http.readBody(request, response)) });
    },
  };
}
