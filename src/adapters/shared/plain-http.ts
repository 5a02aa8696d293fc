import { isIPv4 } from 'node:net';

/**
 * Returns true if what is sent to this URL could be read on the way: it is plain HTTP to another machine. `httpHosts` are the hosts, with
 * or without a port, that are allowed by name.
 */
export function isReadableOnTheWay(url: string, httpHosts: readonly string[]): boolean {
  const { protocol, host, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname) && !httpHosts.includes(host) && !httpHosts.includes(hostname);
}

function isLoopback(hostname: string): boolean {
  const isName = hostname === 'localhost' || hostname.endsWith('.localhost');
  return isName || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'));
}
