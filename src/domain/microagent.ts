/** A microagent of a repository: a Markdown file below the directory that the deployment scans. */
export interface Microagent {
  /** Path below the directory, without the ending: `deploy/aws`. */
  readonly name: string;
  /** Path relative to the repository's root. */
  readonly path: string;
  /** The earliest committer date of a commit that adds the path, in milliseconds since the epoch. */
  readonly createdAt: number;
}

/** A larger file can't be read. */
export const maxMicroagentBytes = 2 ** 20;

export type FrontMatterProblem = 'not_closed' | 'too_long' | 'not_yaml' | 'alias' | 'not_a_mapping' | 'triggers';

/** The default of `<product>` in the paths of microagents. */
export const defaultProduct = 'skep';

/** The two families of git hosts that the directory rule distinguishes. */
export type GitHostFamily = 'gitlab' | 'other';

/** GitLab forbids names that begin with a dot, so the organisation-wide repository has another name there. */
export function microagentDirectory(family: GitHostFamily, repositoryName: string, product: string): string {
  const central = family === 'gitlab' ? `${product}-config` : `.${product}`;
  return repositoryName === central ? 'microagents' : `.${product}/microagents`;
}

const ending = '.md';

/** Returns true if a regular file with this path below the directory is a microagent. */
export function isMicroagentPath(path: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  return name.endsWith(ending) && name !== 'readme.md';
}

export function microagentsOf(
  directory: string,
  files: readonly { readonly path: string; readonly createdAt: number }[],
): Microagent[] {
  const prefix = `${directory}/`;
  return files
    .filter(({ path }) => path.startsWith(prefix) && isMicroagentPath(path.slice(prefix.length)))
    .map(({ path, createdAt }) => ({ name: path.slice(prefix.length, -ending.length), path, createdAt }))
    .toSorted((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path)));
}

/** Returns the triggers in the front matter of a microagent; none without the key. Null if they are not a list of texts with words. */
export function triggersOf({ triggers }: Readonly<Record<string, unknown>>): readonly string[] | null {
  if (triggers === undefined || triggers === null) return [];
  return Array.isArray(triggers) && triggers.every((trigger) => typeof trigger === 'string' && trigger.trim() !== '') ? triggers : null;
}
