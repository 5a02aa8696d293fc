import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { readAdvertisement, readListedRefs } from './advertisement.ts';
import { failureOfStatus } from './failures.ts';
import { branchPrefix, type Ref, type Wanted } from './heads.ts';
import { readBody } from './http-body.ts';
import { delimiter, flush, packet } from './pkt-line.ts';

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
  if (/CERT|SIGNATURE|ISSUER|TLS|SSL/u.test(code)) return failed({ code: 'certificate_untrusted' }, why);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return down({ code: 'host_unknown' }, why);
  return down({ code: 'unreachable' }, why);
}
