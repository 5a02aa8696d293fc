// Started by `crash.test.ts`, which kills it at a random moment: makes moves until then, several at a time.
import { createProcessRuntime } from '../../../../src/adapters/sandbox-runtime/process/index.ts';
import { launchOf, programs } from './programs.ts';

const [, , root = '', round = ''] = process.argv;
const runtime = createProcessRuntime({ root, stopGraceMs: 200 });
const { signal } = new AbortController();

async function live(lane: number): Promise<void> {
  for (let number = 0; ; number += 1) {
    const launch = { ...launchOf(programs.counts), id: `sb-${round}-${lane}-${number}` };
    process.stdout.write(`starting ${launch.id}\n`);
    await runtime.start(launch, () => {}, signal);
    process.stdout.write(`started ${launch.id}\n`);
    if (number % 4 === 0) continue;
    await runtime.freeze(launch.id);
    if (number % 4 === 1) continue;
    await runtime.resume(launch, signal);
    await runtime.stop(launch.id);
    if (number % 4 === 2) continue;
    process.stdout.write(`removing ${launch.id}\n`);
    await runtime.remove(launch.id);
    process.stdout.write(`removed ${launch.id}\n`);
  }
}

await Promise.all([live(0), live(1), live(2)]);
