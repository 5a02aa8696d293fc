export type { ProxyAddress } from './port-links.ts';
export type { HttpServerOptions, RouterOptions } from './options.ts';
export { createRouter } from './router.ts';
export { createHttpServer, type HttpServer } from './server.ts';
