import { isUrl } from './network-environment.ts';

/** What the `.git` of a work tree says. */
export interface DotGit {
  /** Null for a commit without a branch; of an empty repository too. */
  readonly branch: string | null;
  /** Null for an empty repository. */
  readonly oid: string | null;
  /** Is the branch the one that the host has checked out? */
  readonly isDefault: boolean;
  /** Where git fetches from, without a credential. */
  readonly url: string;
}

const sha256Digits = 64;
// What git calls the first branch where nobody says otherwise.
const firstBranch = 'main';

/** The small files of a `.git`, by their paths in it. The remote is the host's public URL; a folder of this machine is none. */
export function dotGitFiles({ branch, oid, isDefault, url }: DotGit): ReadonlyMap<string, string> {
  const origin = isUrl(url) ? url : null;
  const files = new Map([
    ['HEAD', oid !== null && branch === null ? `${oid}\n` : `ref: refs/heads/${branch ?? firstBranch}\n`],
    ['config', config(oid, branch, origin)],
  ]);
  if (oid === null || branch === null) return files;
  const refs = [`refs/heads/${branch}`, ...(origin === null ? [] : [`refs/remotes/origin/${branch}`])];
  files.set('packed-refs', `${packedRefsHeader}${refs.map((ref) => `${oid} ${ref}\n`).join('')}`);
  if (origin !== null && isDefault) files.set('refs/remotes/origin/HEAD', `ref: refs/remotes/origin/${branch}\n`);
  return files;
}

const packedRefsHeader = '# pack-refs with: peeled fully-peeled sorted \n';

function config(oid: string | null, branch: string | null, origin: string | null): string {
  const sha256 = oid?.length === sha256Digits;
  return [
    ...section('core', {
      repositoryformatversion: sha256 ? '1' : '0',
      filemode: 'true',
      bare: 'false',
      logallrefupdates: 'true',
    }),
    ...(sha256 ? section('extensions', { objectformat: 'sha256' }) : []),
    ...(origin === null ? [] : section('remote "origin"', { url: quoted(origin), fetch: '+refs/heads/*:refs/remotes/origin/*' })),
    ...(origin === null || branch === null
      ? []
      : section(`branch ${quoted(branch)}`, { remote: 'origin', merge: quoted(`refs/heads/${branch}`) })),
    '',
  ].join('\n');
}

function section(name: string, values: Readonly<Record<string, string>>): string[] {
  return [`[${name}]`, ...Object.entries(values).map(([key, value]) => `\t${key} = ${value}`)];
}

function quoted(value: string): string {
  return `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}
