import type { Incoming } from '../exchange.ts';

/** The client that limits count: an IPv4 address, or the /64 network of an IPv6 one, which one client owns as a whole. */
export function clientOf(request: Incoming): string {
  // Outside of an Express application there is no `ip`.
  const address = request.ip ?? request.socket.remoteAddress ?? 'unknown';
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  return address.includes(':') ? `${networkOf(address)}::/64` : address;
}

function networkOf(address: string): string {
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const gap = tail === undefined ? 0 : Math.max(0, 8 - front.length - back.length);
  return [...front, ...Array.from({ length: gap }, () => '0'), ...back].slice(0, 4).join(':');
}
