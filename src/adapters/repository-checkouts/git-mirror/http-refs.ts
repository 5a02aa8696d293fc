import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { failureOfStatus } from './git-failures.ts';
import { branchPrefix, type Ref, type Wanted } from './remote-head.ts';

/**
 * Asks a host where its refs are. Git itself would have it list all refs, of which a busy host has hundreds of thousands;
 * and what it makes of a refusal is prose.
 */
export async function askHost(request: CheckoutRequest, wanted: Wanted, signal: AbortSignal): Promise<readonly Ref[]> {
  const { malformed } = providerFailures(request.provider);
  const first = await ask(request, '/info/refs?service=git-upload-pack', null, signal);
  const advertisement = readAdvertisement(first);
  if (advertisement === null) throw malformed('its refs');
  if (advertisement.version === 1) return advertisement.refs;
  const format = advertisement.objectFormat;
  const lines = [
    packet('command=ls-refs'),
    ...(format === null ? [] : [packet(`object-format=${format}`)]),
    delimiter,
    packet('symrefs'),
    ...(wanted === 'branches' ? [branchPrefix] : wanted).map((name) => packet(`ref-prefix ${name}`)),
    flush,
  ];
  const refs = readListedRefs(await ask(request, '/git-upload-pack', lines.join(''), signal));
  if (refs === null) throw malformed('its refs');
  return refs;
}

const maxBytes = 64 * 1024 * 1024;

async function ask(request: CheckoutRequest, path: string, body: string | null, signal: AbortSignal): Promise<Buffer> {
  const { provider, repository, remote } = request;
  const { failed, malformed } = providerFailures(provider);
  const kind = body === null ? 'advertisement' : 'result';
  try {
    const response = await fetch(`${remote.url}${path}`, {
      method: body === null ? 'GET' : 'POST',
      body,
      redirect: 'manual',
      signal,
      headers: {
        'user-agent': 'git/2.0 (skep)',
        'git-protocol': 'version=2',
        accept: `application/x-git-upload-pack-${kind}`,
        ...(body === null ? {} : { 'content-type': 'application/x-git-upload-pack-request' }),
        ...(remote.authorization === null ? {} : { authorization: remote.authorization }),
      },
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      const subject = { provider, repository, authorized: remote.authorization !== null };
      throw failureOfStatus(subject, response.status, response.headers.get('retry-after'));
    }
    if (response.headers.get('content-type')?.split(';')[0] !== `application/x-git-upload-pack-${kind}`) {
      await response.body?.cancel();
      throw failed('its URL does not answer as a git host does; check it');
    }
    return (await readBody(response, maxBytes)) ?? fail(malformed('its refs'));
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof TypeError ? unreachable(request, error) : error;
  }
}

function fail(error: Error): never {
  throw error;
}

/** Whatever fetch throws is a `TypeError`, which holds the request: only its code goes on. */
function unreachable({ provider }: CheckoutRequest, { cause }: TypeError): Error {
  const { failed, down } = providerFailures(provider);
  const code = cause instanceof Error && 'code' in cause && typeof cause.code === 'string' ? cause.code : 'unknown';
  const why = new Error(`the request failed: ${code}`);
  if (/CERT|SIGNATURE|ISSUER|TLS|SSL/u.test(code)) return failed('its certificate is not trusted', why);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return down("the name of its host can't be resolved", why);
  return down("it can't be reached", why);
}

/** What a host says first: its refs (protocol 0 and 1), or what it can be asked (2). */
type Advertisement =
  | { readonly version: 2; readonly objectFormat: string | null }
  | { readonly version: 1; readonly refs: readonly Ref[] };

/** Null where it is not of the documented form. */
function readAdvertisement(bytes: Buffer): Advertisement | null {
  const lines = readPackets(bytes)?.filter((line) => line !== null && !line.startsWith('# service=')) ?? null;
  if (lines === null) return null;
  const [first] = lines;
  if (first !== 'version 2') return readRefs(lines.filter((line) => line !== null && line !== 'version 1'));
  const format = lines.find((line) => line?.startsWith('object-format=') === true);
  return { version: 2, objectFormat: format?.slice('object-format='.length) ?? null };
}

function readRefs(lines: readonly (string | null)[]): Advertisement {
  const [first = '', capabilities = ''] = (lines[0] ?? '').split('\0');
  const target = /(?:^| )symref=HEAD:(\S+)/u.exec(capabilities)?.[1] ?? null;
  const refs = [first, ...lines.slice(1)].flatMap((line) => {
    const [oid = '', name] = (line ?? '').split(' ');
    return name === undefined ? [] : [{ name, oid, target: name === 'HEAD' ? target : null }];
  });
  return { version: 1, refs };
}

/** Reads the answer of protocol 2 to a question for refs; null where it is not of the documented form. */
function readListedRefs(bytes: Buffer): Ref[] | null {
  const lines = readPackets(bytes);
  return lines?.flatMap((line) => {
    const [oid = '', name, ...attributes] = (line ?? '').split(' ');
    if (name === undefined) return [];
    const target = attributes.find((attribute) => attribute.startsWith('symref-target:'));
    return [{ name, oid, target: target?.slice('symref-target:'.length) ?? null }];
  }) ?? null;
}

/** The lines of git's wire format; null stands for what separates them. */
function readPackets(bytes: Buffer): (string | null)[] | null {
  const packets: (string | null)[] = [];
  for (let at = 0; at < bytes.length; ) {
    const digits = bytes.toString('latin1', at, at + 4);
    if (!/^[0-9a-f]{4}$/u.test(digits)) return null;
    const length = Number.parseInt(digits, 16);
    if (length === 3 || at + length > bytes.length) return null;
    packets.push(length < 4 ? null : bytes.toString('utf8', at + 4, at + length).replace(/\n$/u, ''));
    at += Math.max(length, 4);
  }
  return packets;
}

const flush = '0000';
const delimiter = '0001';

function packet(line: string): string {
  const length = Buffer.byteLength(line) + 5;
  return `${length.toString(16).padStart(4, '0')}${line}\n`;
}

/** Null where it is larger than `maxBytes`. */
async function readBody(response: Response, maxBytes: number): Promise<Buffer | null> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
