import { isFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type { Api } from './api.ts';
import type { Credential } from './credential.ts';
import type { HostUrl } from './host-url.ts';
import { Refusal } from './refusal.ts';

/** Does the host answer as a GitLab, and take the credential? One request; never fails. */
export async function checkHost(api: Api, { name }: HostUrl, { given }: Credential): Promise<CheckResult> {
  try {
    const version = await api.version();
    return { ok: true, detail: `GitLab ${version} at ${name} answers, and takes the token` };
  } catch (error) {
    if (error instanceof Refusal) return refused(error, name, given);
    if (isFailure(error)) return { ok: false, detail: error.message };
    return { ok: false, detail: 'the provider is closed, or the check was ended' };
  }
}

function refused({ status, words }: Refusal, name: string, given: boolean): CheckResult {
  if (words === null) {
    return { ok: false, detail: `${name} does not answer as GitLab's API does (status ${status}); check the configured URL` };
  }
  // Who asks for the version has to be somebody.
  if (status === 401 && !given) return { ok: true, detail: `${name} answers; without a token, public projects only are seen` };
  if (status === 401) return { ok: false, detail: `${name} refuses the token; make a new one with the scope read_api` };
  if (status === 403) return { ok: false, detail: `${name} does not let the token in; give it the scope read_api, and see that its account is not blocked` };
  return { ok: false, detail: `${name} answers with status ${status}; try again later` };
}
