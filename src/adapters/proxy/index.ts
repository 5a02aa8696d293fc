export type { ProxyOptions, ProxyServerOptions } from './options.ts';
export { createProxy, type Proxy } from './proxy.ts';
export { createProxyServer, type ProxyServer } from './server.ts';
