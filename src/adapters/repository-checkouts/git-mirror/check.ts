import { sentenceOfFailure } from '../../shared/sentences.ts';
import { isFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import { gitEnvironment, gitVersion } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

// The first that takes settings, and so the credential, from its environment.
const oldest = [2, 31] as const;

/** Is there a git that is new enough? */
export async function checkGit(binary: string, folder: string, signal: AbortSignal): Promise<CheckResult> {
  try {
    const command = { binary, folder, environment: gitEnvironment({}), failed: providerFailures('git').failed };
    const { version, exit } = await gitVersion(command, signal);
    if (exit.code !== 0 || version === null) return { ok: false, detail: 'the git program does not tell its version; install git' };
    const [major = 0, minor = 0] = version.split('.').map(Number);
    const isOld = major < oldest[0] || (major === oldest[0] && minor < oldest[1]);
    if (isOld) return { ok: false, detail: `git ${version} is too old; install ${oldest.join('.')} or newer` };
    return { ok: true, detail: `git ${version}` };
  } catch (error) {
    return { ok: false, detail: isFailure(error) ? sentenceOfFailure(error) : 'the check was ended' };
  }
}
