import { z } from 'zod';
import type { DiskSpace } from '../../../domain/disk-pressure.ts';
import { isFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import { diskSpaceOf } from '../../shared/disk-space.ts';
import { sentenceOfFailure } from '../../shared/failure-sentences.ts';
import { type Engine, statusOf, unlessMissing } from './engine.ts';

/** The oldest API with all features that this adapter uses: Docker 19.03. */
const oldestApi = [1, 40] as const;

/** What Skep reads of the engine's report about itself. */
export const EngineInfo = z.object({
  MemoryLimit: z.boolean().optional(),
  SwapLimit: z.boolean().optional(),
  PidsLimit: z.boolean().optional(),
  CpuCfsQuota: z.boolean().optional(),
  SecurityOptions: z.array(z.string()).nullish(),
  CgroupDriver: z.string().optional(),
  CgroupVersion: z.string().optional(),
  Runtimes: z.record(z.string(), z.unknown()).nullish(),
  DockerRootDir: z.string().optional(),
});

/** Returns whether the engine answers and can run sandboxes, as one line for a person. */
export async function checkEngine({ docker, call }: Engine): Promise<CheckResult> {
  try {
    const { Version, ApiVersion } = await call(() => docker.version());
    const [major = 0, minor = 0] = ApiVersion.split('.').map(Number);
    if (major < oldestApi[0] || (major === oldestApi[0] && minor < oldestApi[1])) {
      const needed = `Skep needs ${oldestApi.join('.')}, which came with Docker 19.03`;
      return { ok: false, detail: `Docker's engine ${Version} is too old (API ${ApiVersion}); ${needed}` };
    }
    const lacks = missingLimits(EngineInfo.parse(await call(() => docker.info())));
    const but = lacks.length === 0 ? '' : `, which can't ${lacks.join(', nor ')}`;
    return { ok: true, detail: `sandboxes are containers of Docker's engine ${Version}${but}` };
  } catch (error) {
    if (isFailure(error)) return { ok: false, detail: sentenceOfFailure(error) };
    const status = statusOf(error);
    if (status === null) return { ok: false, detail: "the connection to Docker's engine failed" };
    return { ok: false, detail: `the program at the engine's address returned the status ${status}; check that it is Docker` };
  }
}

/** Returns the time since which the engine runs, by its own clock. Null if unknown. */
export async function engineStartedAt({ docker, call }: Engine): Promise<string | null> {
  // The engine creates its default network again on each start.
  const bridge = await unlessMissing(call(() => docker.getNetwork('bridge').inspect()));
  return z.object({ Created: z.string() }).safeParse(bridge).data?.Created ?? null;
}

/** Returns false if the engine has no control groups, for example without root on an older machine. Then it can't freeze. */
export async function hasFreezer({ docker, call }: Engine): Promise<boolean> {
  return EngineInfo.parse(await call(() => docker.info())).CgroupDriver !== 'none';
}

/** Returns the limits of a sandbox that the engine can't enforce. */
function missingLimits({ MemoryLimit, PidsLimit, CpuCfsQuota, SecurityOptions, CgroupDriver }: z.infer<typeof EngineInfo>): string[] {
  const seccomp = SecurityOptions?.some((option) => option.includes('seccomp')) ?? false;
  return [
    ...(MemoryLimit === false ? ['limit memory'] : []),
    ...(CpuCfsQuota === false ? ['limit CPUs'] : []),
    ...(PidsLimit === false ? ['limit processes'] : []),
    ...(CgroupDriver === 'none' ? ['freeze sandboxes'] : []),
    ...(seccomp ? [] : ['filter system calls (seccomp)']),
  ];
}

/** Returns the space of the disk of an engine on this machine. Null if its folder is not visible, for example from a container. */
export async function diskSpace({ docker, call }: Engine): Promise<DiskSpace | null> {
  const folder = EngineInfo.safeParse(await call(() => docker.info())).data?.DockerRootDir;
  return folder === undefined ? null : await diskSpaceOf(folder).catch(() => null);
}
