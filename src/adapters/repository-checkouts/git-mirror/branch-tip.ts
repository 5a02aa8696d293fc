import { Failure } from '../../../domain/failure.ts';
import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { fetchBounded } from '../../shared/bounded-fetch.ts';
import { type GitRunner, isRefName, oidForm } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { realTimers, startTimeout, withTimeout } from '../../shared/timeout.ts';
import { branchNotFound, failureOfErrorPacket, failureOfFetch, failureOfStatus } from './git-failures.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import { isUrl } from './mirror-git.ts';

/** The last commit of a branch on the host. */
export interface BranchTip {
  /** Null if the host has checked out a commit without a branch. */
  readonly branch: string | null;
  /** The commit, in 40 (SHA-1) or 64 (SHA-256) hexadecimal digits. */
  readonly oid: string;
  /** True if the host's HEAD is this branch. */
  readonly isDefault: boolean;
}

interface Ref {
  readonly name: string;
  readonly oid: string;
  /** The target of a symbolic ref. In a local folder, only HEAD has one. */
  readonly target: string | null;
}

export const branchPrefix = 'refs/heads/';

/** Asks the host for the branch's current commit. Null if the repository is empty and no branch is requested. */
export async function askTip(
  git: GitRunner,
  request: CheckoutRequest,
  { answerMs, root }: Pick<ResolvedOptions, 'answerMs' | 'root'>,
  signal: AbortSignal,
): Promise<BranchTip | null> {
  const { provider, repository, branch, remote } = request;
  if (branch !== null && !isBranchName(branch)) throw branchNotFound(request, branch);
  const { failed, timedOut } = providerFailures(provider);
  if (holdsCredential(remote.url)) throw failed('its URL contains a credential; remove it, and configure the credential separately');
  const list = (prefixes: readonly string[], within: AbortSignal): Promise<readonly Ref[]> =>
    isUrl(remote.url) ? listHttpRefs(request, prefixes, within) : listFolderRefs(git, request, prefixes, root, within);
  const limit = startTimeout(realTimers, answerMs, () => timedOut(answerMs), [signal]);
  return await withTimeout(limit, async (within) => {
    const refs = await list(branch === null ? ['HEAD'] : ['HEAD', branchPrefix + branch], within);
    const tip = tipIn(refs, branch);
    if (tip !== null || branch === null) return tip;
    // A repository with a dangling HEAD may still have branches.
    const isEmpty = tipIn(refs, null) === null && !(await list([branchPrefix], within)).some(({ name }) => name.startsWith(branchPrefix));
    throw isEmpty ? new Failure('repository_empty', { repository, branch }) : branchNotFound(request, branch);
  });
}

function holdsCredential(url: string): boolean {
  if (!isUrl(url)) return false;
  const { username, password } = new URL(url);
  return username !== '' || password !== '';
}

/** Returns true if git accepts the name as a branch name. */
function isBranchName(name: string): boolean {
  return name.length <= 500 && name !== '@' && !name.startsWith('-') && isRefName(name);
}

function tipIn(refs: readonly Ref[], branch: string | null): BranchTip | null {
  const head = refs.find(({ name }) => name === 'HEAD');
  const target = head?.target ?? null;
  const defaultBranch = target?.startsWith(branchPrefix) === true ? target.slice(branchPrefix.length) : null;
  const found = branch === null ? head : refs.find(({ name }) => name === branchPrefix + branch);
  if (found === undefined || !oidForm.test(found.oid) || /^0+$/u.test(found.oid)) return null;
  const named = branch ?? (defaultBranch !== null && isBranchName(defaultBranch) ? defaultBranch : null);
  return { branch: named, oid: found.oid, isDefault: named !== null && named === defaultBranch };
}

/** Lists the refs of a git folder of this machine. `folder` is no git folder, so git uses no other repository. */
async function listFolderRefs(
  git: GitRunner,
  request: CheckoutRequest,
  prefixes: readonly string[],
  folder: string,
  signal: AbortSignal,
): Promise<readonly Ref[]> {
  const patterns = prefixes.map((prefix) => (prefix.endsWith('/') ? `${prefix}*` : prefix));
  const args = ['ls-remote', '--symref', '--quiet', request.remote.url, ...patterns];
  const exit = await git.run({ args, folder, environment: { GIT_ALLOW_PROTOCOL: 'file' } }, signal);
  if (exit.code !== 0) throw failureOfFetch(request, exit);
  // Lines `ref: refs/heads/main<tab>HEAD` and `OID<tab>NAME`.
  const target = /^ref: ([^\n]+)\tHEAD$/mu.exec(exit.stdout)?.[1] ?? null;
  const refs = exit.stdout.matchAll(/^([0-9a-f]+)\t([^\n]+)/gmu);
  return [...refs].map(([, oid = '', name = '']) => ({ name, oid, target: name === 'HEAD' ? target : null }));
}

/** `git ls-remote` would request all refs, and a busy host has hundreds of thousands of them. See decision record 27. */
async function listHttpRefs(request: CheckoutRequest, prefixes: readonly string[], signal: AbortSignal): Promise<readonly Ref[]> {
  const advertised = await requestLines(request, '/info/refs?service=git-upload-pack', null, signal);
  const lines = advertised.filter((line) => !line.startsWith('# service=') && line !== 'version 1');
  if (lines[0] !== 'version 2') return parseOldRefs(lines);
  const format = lines.find((line) => line.startsWith('object-format='));
  const command = [
    packet('command=ls-refs'),
    ...(format === undefined ? [] : [packet(format)]),
    delimiter,
    packet('symrefs'),
    ...prefixes.map((prefix) => packet(`ref-prefix ${prefix}`)),
    flush,
  ].join('');
  return (await requestLines(request, '/git-upload-pack', command, signal)).flatMap((line) => {
    const [oid = '', name, ...attributes] = line.split(' ');
    const target = attributes.find((attribute) => attribute.startsWith('symref-target:'))?.slice('symref-target:'.length) ?? null;
    return name === undefined ? [] : [{ name, oid, target }];
  });
}

/** Protocols 0 and 1 list all refs at once. The first line has the host's capabilities after a NUL. */
function parseOldRefs([first = '', ...rest]: readonly string[]): Ref[] {
  const [ref = '', capabilities = ''] = first.split('\0');
  const head = /(?:^| )symref=HEAD:(\S+)/u.exec(capabilities)?.[1] ?? null;
  return [ref, ...rest].flatMap((line) => {
    const [oid = '', name] = line.split(' ');
    return name === undefined ? [] : [{ name, oid, target: name === 'HEAD' ? head : null }];
  });
}

const maxBytes = 64 * 1024 * 1024;
const errorPrefix = 'ERR ';

/** Sends a request, and returns the lines of the response. Follows no redirect, because another URL must not get the credential. */
async function requestLines(request: CheckoutRequest, path: string, body: string | null, signal: AbortSignal): Promise<string[]> {
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
  const response = await fetchBounded(remote.url + path, init, maxBytes, failures);
  if (response.status !== 200) throw failureOfStatus(request, response.status, response.headers.get('retry-after'));
  if (response.headers.get('content-type')?.split(';')[0] !== type) throw failed('its URL does not answer as a git host does; check it');
  const lines = readPackets(response.body);
  if (lines === null) throw malformed('its refs');
  const error = lines.find((line) => line.startsWith(errorPrefix));
  if (error !== undefined) throw failureOfErrorPacket(request, error.slice(errorPrefix.length));
  return lines;
}

const flush = '0000';
const delimiter = '0001';

/** Returns a line in git's wire format: its length in four hexadecimal digits, then its text. */
function packet(line: string): string {
  return `${(Buffer.byteLength(line) + 5).toString(16).padStart(4, '0')}${line}\n`;
}

/** Returns the lines, without flushes and delimiters. Null if the bytes are not in the wire format. */
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
