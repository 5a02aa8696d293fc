import type { IncomingMessage } from 'node:http';
import type { Router } from 'express';
import type { ProxyAddress } from './port-links.ts';
import type { HttpContext } from './request-context.ts';

export const defaultRequestsPerMinute = 6000;
export const defaultStreamsPerKey = 50;

/** Adds routes to the HTTP interface, beside its own. Their requests have a context, security headers and a line in the log too. */
export type Mount = (router: Router, http: HttpContext) => void;

/** A setting as administrators see it. */
export interface ShownSetting {
  /** The key in the configuration file. */
  readonly key: string;
  /** The variable of the environment; null if it can only stand in the file. */
  readonly variable: string | null;
  readonly source: 'environment' | 'file' | 'default';
  /** For a person. Null if there is none, and always for a secret. */
  readonly value: string | null;
  readonly isSecret: boolean;
  /** What it takes. */
  readonly form: string;
}

/** How the HTTP interface behaves, wherever it is mounted. */
export interface RouterOptions {
  /** The address by which clients reach the application, without the mount path. Default: the OpenAPI document names none. */
  readonly publicUrl?: string;
  /** Largest body that is taken; 262,144 (256 KiB) unless given. */
  readonly bodyLimitBytes?: number;
  /** Requests that one key may make in a minute; 6,000 unless given, null is no limit. */
  readonly requestsPerMinute?: number | null;
  /** Streams that one key may have open at a time; 50 unless given, null is no limit. */
  readonly streamsPerKey?: number | null;
  /** Wrong keys that one client address may try in a minute; 20 unless given. */
  readonly failedLoginsPerMinute?: number;
  /** Returns the credential of a request, or null. Default: that in `X-Session-API-Key`, or in `Authorization: Bearer`. */
  readonly credential?: (request: IncomingMessage) => string | null;
  /** The origins whose pages may call the interface from a browser, such as `https://app.example.com`; none unless given. */
  readonly corsOrigins?: readonly string[];
  /** How often an idle stream of events sends a heartbeat, in milliseconds; 15,000 unless given. */
  readonly heartbeatMs?: number;
  /** Where clients reach the proxy, if there is one: `exposed_urls` and links lead through it then. */
  readonly proxy?: ProxyAddress;
  /** The name of the deployment, for the titles of its API reference; `skep` unless given. */
  readonly product?: string;
  /** The settings that administrators see; none unless given. */
  readonly settings?: readonly ShownSetting[];
  /** The folder of the dashboard that is served at `/`; that of the package unless given. False: none, and `/` leads to `/docs`. */
  readonly dashboard?: string | false;
  /** Further interfaces at the same address, such as that for E2B's clients (`skep/e2b`); none unless given. */
  readonly mounts?: readonly Mount[];
}

/** How the server of its own behaves. Times are in milliseconds. */
export interface HttpServerOptions extends RouterOptions {
  /** 127.0.0.1 unless given. */
  readonly host?: string;
  /** 3000 unless given; 0 is any free one. */
  readonly port?: number;
  /** The addresses and networks of proxies whose `X-Forwarded-For` says which client asks; none unless given. */
  readonly trustProxy?: readonly string[];
  /** Largest head of a request, in bytes; 16 KiB unless given. */
  readonly maxHeaderBytes?: number;
  /** From the connection or the end of the last request to the end of the head; 10,000 unless given. */
  readonly headersTimeoutMs?: number;
  /** From the head of a request to the end of its body; 30,000 unless given. A file that is written may take longer. */
  readonly requestTimeoutMs?: number;
  /** How long a connection is kept for a next request; 5,000 unless given. */
  readonly keepAliveTimeoutMs?: number;
  /** How long a client may leave an answer unread; 30,000 unless given. */
  readonly writeTimeoutMs?: number;
  /** How long closing waits for the requests under way; 10,000 unless given. */
  readonly drainMs?: number;
}
