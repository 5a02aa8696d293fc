import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Skep } from '../../application/skep.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Deployment } from './deployment.ts';
import type { Call, Operation } from './operation.ts';
import type { Papers } from './papers.ts';
import type { Readiness } from './readiness.ts';
import { headerOf } from './request/headers.ts';
import { originForm, pathOf, queryOf } from './request/path.ts';

const saneRequestId = /^[A-Za-z0-9._-]{1,64}$/;

/** A request, with what an application that it came through may have found out: its body, and the client's address. */
export type Incoming = IncomingMessage & { readonly body?: unknown; readonly ip?: string | undefined };
export type Outgoing = ServerResponse;

/** A request and its response, and what is known of them so far. */
export class Exchange implements Call {
  readonly deployment: Deployment;
  readonly request: Incoming;
  readonly response: Outgoing;
  /** The operation that the route belongs to; null where there is none. */
  readonly operation: Operation | null;
  readonly requestId: string;
  readonly path: string;
  readonly query: string;
  readonly mount: string;
  readonly startedAt = performance.now();
  /** Who makes the request, once that is known. */
  caller: Principal | null = null;

  constructor(deployment: Deployment, operation: Operation | null, request: Incoming, response: Outgoing, mount: string) {
    this.deployment = deployment;
    this.request = request;
    this.response = response;
    this.operation = operation;
    this.mount = mount;
    const given = headerOf(request.headers, 'x-request-id');
    this.requestId = given !== null && saneRequestId.test(given) ? given : randomUUID();
    const target = originForm(request.url ?? '/');
    this.path = pathOf(target);
    this.query = queryOf(target);
  }

  get skep(): Skep {
    return this.deployment.skep;
  }

  get principal(): Principal {
    if (this.caller === null) throw new Error('the operation needs no key, so nobody is known to make it');
    return this.caller;
  }

  get bodyLimitBytes(): number {
    return this.deployment.settings.bodyLimitBytes;
  }

  get papers(): Papers {
    return this.deployment.papers;
  }

  get readiness(): Readiness {
    return this.deployment.readiness;
  }

  get ending(): AbortSignal {
    return this.deployment.ending;
  }

  readonly link = (path: string): string => `${this.deployment.publicPath}${this.mount}${path}`;

  readonly signal = (): AbortSignal => {
    const controller = new AbortController();
    this.response.once('close', () => {
      if (!this.response.writableEnded) controller.abort();
    });
    return controller.signal;
  };
}
