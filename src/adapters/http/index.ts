export type { ProxyAddress } from './port-links.ts';
export type { HttpServerOptions, RouterOptions } from './http-options.ts';
export { createRouter } from './router.ts';
export { handleUpgrades } from './web-socket.ts';
export { createHttpServer, type HttpServer } from './http-server.ts';
