import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { RuntimeOptions, SkepOptions } from '../options.ts';
import { unknownChoice } from './unknown-choice.ts';

/** Opens the sandbox runtime that the options choose; a ready-made one is its maker's to close. */
export async function openRuntime({ runtime = { kind: 'process' }, dataDir }: SkepOptions, closers: AsyncDisposableStack): Promise<SandboxRuntime> {
  if (isReady(runtime)) return runtime;
  const opened = await open(runtime, dataDir, closers);
  closers.defer(() => opened.close());
  return opened;
}

function isReady(runtime: RuntimeOptions | SandboxRuntime): runtime is SandboxRuntime {
  return typeof runtime === 'object' && 'inspect' in runtime;
}

async function open(runtime: RuntimeOptions, dataDir: string | undefined, closers: AsyncDisposableStack): Promise<SandboxRuntime> {
  switch (runtime.kind) {
    case 'process': {
      const { createProcessRuntime } = await import('../../adapters/process/index.ts');
      const root = runtime.root ?? (dataDir === undefined ? await temporaryRoot(closers) : join(dataDir, 'sandboxes'));
      return createProcessRuntime({ root });
    }
    default:
      throw unknownChoice('runtime', runtime, 'process as its kind, or is a SandboxRuntime of your own');
  }
}

/** Where there is no data folder, workspaces don't outlive the deployment. */
async function temporaryRoot(closers: AsyncDisposableStack): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'skep-sandboxes-'));
  closers.defer(() => rm(root, { recursive: true, force: true }));
  return root;
}
