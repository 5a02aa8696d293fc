import { isIPv4 } from 'node:net';

/** Whether it is plain HTTP to another machine. `httpHosts`, with or without a port, are allowed by name. */
export function isReadableOnTheWay(url: string, httpHosts: readonly string[]): boolean {
  const { protocol, host, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname) && !httpHosts.includes(host) && !httpHosts.includes(hostname);
}

/** Whether the host is this machine alone: a name or an address, which may be in the brackets of a URL. */
export function isLoopback(host: string): boolean {
  const isName = host === 'localhost' || host.endsWith('.localhost');
  return isName || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'));
}
