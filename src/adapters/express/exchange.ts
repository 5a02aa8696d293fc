import { randomUUID } from 'node:crypto';
import type { Request, Response } from 'express';
import type { Skep } from '../../application/skep.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Deployment } from './deployment.ts';
import type { Call, Operation } from './operation.ts';
import type { Papers } from './papers.ts';
import type { Readiness } from './readiness.ts';
import { headerOf } from './request/headers.ts';
import { splitTarget } from './request/path.ts';

const saneRequestId = /^[A-Za-z0-9._-]{1,64}$/;

/** A request and its response, and what is known of them so far. */
export class Exchange implements Call {
  readonly deployment: Deployment;
  readonly request: Request;
  readonly response: Response;
  /** The operation that the route belongs to; null where there is none. */
  readonly operation: Operation | null;
  readonly requestId: string;
  readonly target: { readonly path: string; readonly query: string };
  readonly startedAt = performance.now();
  /** Who makes the request, once that is known. */
  caller: Principal | null = null;

  constructor(deployment: Deployment, request: Request, response: Response, operation: Operation | null) {
    this.deployment = deployment;
    this.request = request;
    this.response = response;
    this.operation = operation;
    const given = headerOf(request.headers, 'x-request-id');
    this.requestId = given !== null && saneRequestId.test(given) ? given : randomUUID();
    this.target = splitTarget(request.url);
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

  get mount(): string {
    return this.request.baseUrl;
  }

  get papers(): Papers {
    return this.deployment.papers;
  }

  get readiness(): Readiness {
    return this.deployment.readiness;
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
