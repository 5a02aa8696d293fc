/** A commit that is wanted, and where it is found. */
export interface Head {
  /** Null where the host has checked out no branch, but a commit. */
  readonly branch: string | null;
  /** The commit, in 40 (SHA-1) or 64 (SHA-256) hexadecimal digits. */
  readonly oid: string;
  /** Is the branch the one that the host has checked out? */
  readonly isDefault: boolean;
}

/** A name that the host has for a commit. */
export interface Ref {
  readonly name: string;
  readonly oid: string;
  /** The ref that it stands for. */
  readonly target: string | null;
}

export const branchPrefix = 'refs/heads/';
const oidForm = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u;
// What git refuses in a name; `..` and the like are seen to by segment.
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const unsafe = /[\0-\u0020\u007f~^:?*[\\]|@\{|\.\./u;

/** Would git take it as the name of a branch? */
export function isBranchName(name: string): boolean {
  if (name.length > 500 || !name.isWellFormed() || unsafe.test(name) || name === '@' || name.startsWith('-')) return false;
  return name.split('/').every((part) => part !== '' && !part.startsWith('.') && !part.endsWith('.') && !part.endsWith('.lock'));
}

/** Which refs to ask a host for: those with such a name, or all branches. */
export type Wanted = 'branches' | readonly string[];

export function refsOf(branch: string | null): readonly string[] {
  return branch === null ? ['HEAD'] : ['HEAD', branchPrefix + branch];
}

export function hasBranches(refs: readonly Ref[]): boolean {
  return refs.some(({ name }) => name.startsWith(branchPrefix));
}

/** The commit that is wanted, among what the host has; null where there is none. */
export function headIn(refs: readonly Ref[], branch: string | null): Head | null {
  const head = refs.find(({ name }) => name === 'HEAD');
  const target = head?.target ?? null;
  const defaultBranch = target?.startsWith(branchPrefix) === true ? target.slice(branchPrefix.length) : null;
  const found = branch === null ? head : refs.find(({ name }) => name === branchPrefix + branch);
  if (found === undefined || !oidForm.test(found.oid) || /^0+$/u.test(found.oid)) return null;
  const named = branch ?? (defaultBranch !== null && isBranchName(defaultBranch) ? defaultBranch : null);
  return { branch: named, oid: found.oid, isDefault: named !== null && named === defaultBranch };
}
