import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { fetchBounded } from '../../shared/bounded-fetch.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { failureOfStatus } from './git-failures.ts';
import type { Ref } from './remote-head.ts';

/**
 * Lists the refs of a host that begin with these prefixes, over git's smart HTTP protocol. `git ls-remote` would have the host list all
 * refs, of which a busy host has hundreds of thousands; see decision record 27.
 */
export async function listHttpRefs(request: CheckoutRequest, prefixes: readonly string[], signal: AbortSignal): Promise<readonly Ref[]> {
  const advertised = await ask(request, '/info/refs?service=git-upload-pack', null, signal);
  const lines = advertised.filter((line) => !line.startsWith('# service=') && line !== 'version 1');
  if (lines[0] !== 'version 2') return oldRefs(lines);
  const format = lines.find((line) => line.startsWith('object-format='));
  const command = [
    packet('command=ls-refs'),
    ...(format === undefined ? [] : [packet(format)]),
    delimiter,
    packet('symrefs'),
    ...prefixes.map((prefix) => packet(`ref-prefix ${prefix}`)),
    flush,
  ].join('');
  return (await ask(request, '/git-upload-pack', command, signal)).flatMap((line) => {
    const [oid = '', name, ...attributes] = line.split(' ');
    const target = attributes.find((attribute) => attribute.startsWith('symref-target:'))?.slice('symref-target:'.length) ?? null;
    return name === undefined ? [] : [{ name, oid, target }];
  });
}

/** Protocols 0 and 1 list all refs at once; the first line carries what the host can do, after a NUL. */
function oldRefs([first = '', ...rest]: readonly string[]): Ref[] {
  const [ref = '', capabilities = ''] = first.split('\0');
  const head = /(?:^| )symref=HEAD:(\S+)/u.exec(capabilities)?.[1] ?? null;
  return [ref, ...rest].flatMap((line) => {
    const [oid = '', name] = line.split(' ');
    return name === undefined ? [] : [{ name, oid, target: name === 'HEAD' ? head : null }];
  });
}

const maxBytes = 64 * 1024 * 1024;

/** Sends a request, and returns the lines of the response. Follows no redirect, where the credential must not go. */
async function ask(request: CheckoutRequest, path: string, body: string | null, signal: AbortSignal): Promise<string[]> {
  const { provider, remote } = request;
  const failures = providerFailures(provider);
  const { failed, malformed } = failures;
  const type = `application/x-git-upload-pack-${body === null ? 'advertisement' : 'result'}`;
  const headers = {
    'user-agent': 'git/2.0 (skep)',
    'git-protocol': 'version=2',
    accept: type,
    ...(body === null ? {} : { 'content-type': 'application/x-git-upload-pack-request' }),
    ...(remote.authorization === null ? {} : { authorization: remote.authorization }),
  };
  const init = { method: body === null ? 'GET' : 'POST', body, headers, signal };
  const response = await fetchBounded(remote.url + path, init, { maxBytes, failures });
  if (response.status !== 200) throw failureOfStatus(request, response.status, response.headers.get('retry-after'));
  if (response.headers.get('content-type')?.split(';')[0] !== type) throw failed('its URL does not answer as a git host does; check it');
  const lines = readPackets(response.body);
  if (lines === null) throw malformed('its refs');
  return lines;
}

const flush = '0000';
const delimiter = '0001';

/** A line of git's wire format: its length in four hexadecimal digits, then its text. */
function packet(line: string): string {
  return `${(Buffer.byteLength(line) + 5).toString(16).padStart(4, '0')}${line}\n`;
}

/** The lines, without flushes and delimiters; null if the bytes are not of the wire format. */
function readPackets(bytes: Buffer): string[] | null {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const digits = bytes.toString('latin1', at, at + 4);
    const length = /^[0-9a-f]{4}$/u.test(digits) ? Number.parseInt(digits, 16) : 3;
    if (length === 3 || at + length > bytes.length) return null;
    if (length >= 4) lines.push(bytes.toString('utf8', at + 4, at + length).replace(/\n$/u, ''));
    at += Math.max(length, 4);
  }
  return lines;
}
