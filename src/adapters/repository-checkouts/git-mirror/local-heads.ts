import { dirname } from 'node:path';
import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { branchPrefix, type Ref, type Wanted } from './heads.ts';
import type { Git } from './git.ts';
import { failureOfFetch } from './fetch-failure.ts';

/** Asks a git folder of this machine where its refs are. Git runs in `folder`, which is no repository. */
export async function askFolder(
  git: Git,
  request: CheckoutRequest,
  wanted: Wanted,
  folder: string,
  signal: AbortSignal,
): Promise<readonly Ref[]> {
  const run = {
    args: ['ls-remote', '--symref', '--quiet', request.remote.url, ...(wanted === 'branches' ? [`${branchPrefix}*`] : wanted)],
    folder,
    // No repository that the folder may happen to be in has a say.
    environment: { GIT_ALLOW_PROTOCOL: 'file', GIT_CEILING_DIRECTORIES: dirname(folder) },
  };
  const exit = await git.run(run, signal);
  if (exit.code !== 0) throw failureOfFetch(request, exit);
  return readRefs(Buffer.from(exit.output, 'latin1').toString('utf8'));
}

/** Lines `ref: refs/heads/main<tab>HEAD` and `OID<tab>NAME`. */
function readRefs(output: string): Ref[] {
  const pairs = output.split('\n').map((line) => {
    const [first = '', name] = line.split('\t');
    return [first, name] as const;
  });
  const targets = new Map(pairs.flatMap(([target, name]) => (target.startsWith('ref: ') ? [[name, target.slice(5)] as const] : [])));
  return pairs.flatMap(([oid, name]) => {
    return name === undefined || oid.startsWith('ref: ') ? [] : [{ name, oid, target: targets.get(name) ?? null }];
  });
}
