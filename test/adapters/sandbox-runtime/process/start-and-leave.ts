import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createProcessRuntime } from '../../../../src/adapters/sandbox-runtime/process/index.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxLaunch } from '../../../../src/ports/sandbox-runtime.ts';
import type { Host } from './host.ts';

/** Has a Skep of its own start the sandbox, which ends then by itself: nobody's child is left. */
export async function startAndLeave({ root }: Host, launch: SandboxLaunch): Promise<void> {
  await promisify(execFile)(process.execPath, [fileURLToPath(import.meta.url), root, JSON.stringify(launch)]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , root = '', launch = ''] = process.argv;
  await createProcessRuntime({ root }).start(JSON.parse(launch), () => {}, neverAborts);
}
