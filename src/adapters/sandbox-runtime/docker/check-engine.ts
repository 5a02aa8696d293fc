import { z } from 'zod';
import { isFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type { Connection } from './connect.ts';
import { statusOf } from './engine-errors.ts';

/** The oldest API that has all that is asked of it: Docker 19.03's. */
const oldestApi = [1, 40] as const;

const Info = z.object({
  MemoryLimit: z.boolean().optional(),
  PidsLimit: z.boolean().optional(),
  CpuCfsQuota: z.boolean().optional(),
  SecurityOptions: z.array(z.string()).nullish(),
});

/** Whether the engine answers and can hold sandboxes, in a line for a person. */
export async function checkEngine({ docker, call }: Connection): Promise<CheckResult> {
  try {
    const { Version, ApiVersion } = await call(() => docker.version());
    if (isTooOld(ApiVersion)) return { ok: false, detail: `Docker's engine ${Version} is too old (API ${ApiVersion}); Skep needs ${oldestApi.join('.')}, which came with Docker 19.03` };
    const lacks = lacking(Info.parse(await call(() => docker.info())));
    return { ok: true, detail: `sandboxes are containers of Docker's engine ${Version}${lacks.length === 0 ? '' : `, which can't ${lacks.join(', nor ')}`}` };
  } catch (error) {
    if (isFailure(error)) return { ok: false, detail: error.message };
    const status = statusOf(error);
    return { ok: false, detail: status === null ? "Docker's engine can't be spoken to" : `what listens at the engine's address answered ${status}; is it Docker?` };
  }
}

function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < oldestApi[0] || (major === oldestApi[0] && minor < oldestApi[1]);
}

/** What of a sandbox's limits it can't keep. */
function lacking({ MemoryLimit, PidsLimit, CpuCfsQuota, SecurityOptions }: z.infer<typeof Info>): string[] {
  const seccomp = SecurityOptions?.some((option) => option.includes('seccomp')) ?? false;
  return [
    ...(MemoryLimit === false ? ['limit memory'] : []),
    ...(CpuCfsQuota === false ? ['limit CPUs'] : []),
    ...(PidsLimit === false ? ['limit processes'] : []),
    ...(seccomp ? [] : ['filter system calls (seccomp)']),
  ];
}
