export type { ProxyOptions, ProxyServerOptions } from './proxy-options.ts';
export { createProxy, type Proxy } from './proxy.ts';
export { createProxyServer, type ProxyServer } from './proxy-server.ts';
