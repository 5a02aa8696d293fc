import type { CheckResult } from '../../../ports/check-result.ts';
import type { RepositoryCheckouts } from '../../../ports/repository-checkouts.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { checkGit } from './check.ts';
import { createCheckout } from './checkout.ts';
import { resolveOptions, type GitMirrorOptions } from './options.ts';
import { openWorkshop, type Workshop } from './workshop.ts';

const name = 'git-mirror';

/**
 * Brings repositories to a folder of this machine with the git program, one bare mirror each, and makes work trees of
 * them, with the whole history of their branch and nothing else. One process at a time is to use the folder; several do
 * no harm to what is kept, but may end each other's checkouts.
 *
 * An archive's git goes on until it is read to its end, cancelled, or the signal of its checkout fires.
 */
export function createGitMirror(options: GitMirrorOptions): RepositoryCheckouts {
  const resolved = resolveOptions(options);
  const closing = new AbortController();
  let opening: Promise<Workshop> | null = null;

  /** At the first use; a folder that can't be used may be mended meanwhile. */
  function open(): Promise<Workshop> {
    opening ??= openWorkshop(resolved, closing.signal).catch((error: unknown) => {
      opening = null;
      throw error;
    });
    return opening;
  }

  const checkOut = createCheckout(resolved, open, closing.signal);

  async function check(): Promise<CheckResult> {
    const workshop = await open().catch(() => null);
    if (workshop === null) return { ok: false, detail: 'the folder of the git mirrors can not be made or written; check who owns it' };
    const git = await checkGit(resolved.gitBinary, resolved.root, closing.signal);
    const { mirrors, bytes } = workshop.leases.stock();
    const kept = `${mirrors} ${mirrors === 1 ? 'repository' : 'repositories'} kept, ${inMebibytes(bytes)} of ${inMebibytes(resolved.limitBytes)} MiB`;
    return git.ok ? { ok: true, detail: `${git.detail}; ${kept}` } : git;
  }

  return {
    name,
    checkOut,
    check,
    async close() {
      closing.abort(providerFailures(name).failed({ code: 'closed' }));
      const workshop = await opening?.catch(() => null);
      await workshop?.close();
    },
  };
}


function inMebibytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}
