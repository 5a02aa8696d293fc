import type { HttpHandler } from './request-context.ts';

const exposedHeaders = 'Content-Range, ETag, Last-Event-ID, Location, Retry-After, X-Request-Id';
const preflightHeaders = {
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
  'Access-Control-Allow-Headers':
    'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, If-Range, Last-Event-ID, Range, X-Request-Id, ' +
    'X-Session-API-Key',
  'Access-Control-Max-Age': '600',
};

/** Lets pages of these origins call the API. The API uses no cookies, so they are not allowed. */
export function crossOrigin(origins: readonly string[]): HttpHandler {
  return (request, response, next) => {
    if (origins.length > 0) response.vary('Origin');
    const { origin } = request.headers;
    if (origin === undefined || !origins.includes(origin)) {
      next();
      return;
    }
    response.set({ 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': exposedHeaders });
    const isPreflight = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined;
    if (isPreflight) response.status(204).set(preflightHeaders).end();
    else next();
  };
}
