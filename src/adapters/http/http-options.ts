import type { IncomingMessage } from 'node:http';
import type { Router } from 'express';
import type { ProxyAddress } from './port-links.ts';
import type { HttpContext } from './request-context.ts';
import type { ShownSetting } from './routes/overview.ts';

export const defaultRequestsPerMinute = 6000;
export const defaultStreamsPerKey = 50;

/** Adds routes to the HTTP API. Their requests also have a context, security headers and a log line. */
export type Mount = (router: Router, http: HttpContext) => void;

/** Options of the HTTP API, for every kind of mount. */
export interface RouterOptions {
  /** The address of the application for clients, without the mount path. Default: the OpenAPI document has only the mount path. */
  readonly publicUrl?: string;
  /** The largest request body, in bytes. Default: 262,144 (256 KiB). */
  readonly bodyLimitBytes?: number;
  /** Requests that one key can make in a minute. Default: 6,000. Null: no limit. */
  readonly requestsPerMinute?: number | null;
  /** Streams that one key can have open at a time. Default: 50. Null: no limit. */
  readonly streamsPerKey?: number | null;
  /** Wrong keys that one client address can try in a minute. Default: 20. */
  readonly failedLoginsPerMinute?: number;
  /** Returns the credential of a request, or null. Default: the one in `X-Session-API-Key` or in `Authorization: Bearer`. */
  readonly credential?: (request: IncomingMessage) => string | null;
  /** The origins whose pages can call the API from a browser, for example `https://app.example.com`. Default: none. */
  readonly corsOrigins?: readonly string[];
  /** The heartbeat interval of an idle event stream, in milliseconds. Default: 15,000. */
  readonly heartbeatMs?: number;
  /** The proxy's address for clients. If it is set, `exposed_urls` and links lead through the proxy. */
  readonly proxy?: ProxyAddress;
  /** The name of the deployment in the title of the API reference. Default: `skep`. */
  readonly product?: string;
  /** The settings that administrators see. Default: none. */
  readonly settings?: readonly ShownSetting[];
  /** The folder of the dashboard that is served at `/`. Default: the one in the package. False: no dashboard; `/` redirects to `/docs`. */
  readonly dashboard?: string | false;
  /** Further APIs at the same address, such as `skep/e2b` for E2B's clients. Default: none. */
  readonly mounts?: readonly Mount[];
}

/** Options of the standalone server. Times are in milliseconds. */
export interface HttpServerOptions extends RouterOptions {
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: 3000. 0 chooses any free port. */
  readonly port?: number;
  /** The addresses and networks of proxies whose `X-Forwarded-For` names the client. Default: none. */
  readonly trustProxy?: readonly string[];
  /** The largest head of a request, in bytes. Default: 16 KiB. */
  readonly maxHeaderBytes?: number;
  /** From the connection, or the first byte of a later request, to the end of the head. Default: 10,000. */
  readonly headersTimeoutMs?: number;
  /** From the head of a request to the end of its body. Default: 30,000. The upload of a file may take longer. */
  readonly requestTimeoutMs?: number;
  /** How long an idle connection is kept for the next request. Default: 5,000. */
  readonly keepAliveTimeoutMs?: number;
  /** How long a client can leave a response unread. Default: 30,000. */
  readonly writeTimeoutMs?: number;
  /** How long `close` waits for active requests. Default: 10,000. */
  readonly drainMs?: number;
}
