import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import helmet from 'helmet';

/** The security headers of every answer, as helmet sets them for an API: nothing in an answer may load or run anything. */
export const securityHeaders = headersSetBy(
  helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    xFrameOptions: { action: 'deny' },
    // Whoever terminates TLS decides on this one, for the whole host.
    strictTransportSecurity: false,
    // The rest is about pages in browsers of long ago, or about pages at all.
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    xDownloadOptions: false,
    xDnsPrefetchControl: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  }),
);

/** What a middleware sets is the same for every request, so it is asked once. */
function headersSetBy(
  middleware: (request: IncomingMessage, response: ServerResponse, next: () => void) => void,
): readonly (readonly [string, string])[] {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  middleware(response.req, response, () => {});
  return Object.entries(response.getHeaders()).map(([name, value]) => [name, String(value)]);
}
