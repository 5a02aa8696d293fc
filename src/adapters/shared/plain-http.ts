import { isIPv4 } from 'node:net';

/** Returns whether the URL is plain HTTP to another machine. Hosts in `httpHosts`, with or without a port, are allowed. */
export function isUnencryptedRemote(url: string, httpHosts: readonly string[]): boolean {
  const { protocol, host, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname) && !httpHosts.includes(host) && !httpHosts.includes(hostname);
}

/** Returns whether the host is this machine: a name or an address, also in the brackets of a URL. */
export function isLoopback(host: string): boolean {
  const isName = host === 'localhost' || host.endsWith('.localhost');
  return isName || host === '::1' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'));
}
