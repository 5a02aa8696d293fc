import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const root = import.meta.dirname;

/** Tests that start no processes: those of the domain, the use cases, HTTP and git hosts. */
const withoutProcesses = [
  'test/{domain,application}/**/*.test.ts',
  'test/adapters/{auth,e2b,http}/**/*.test.ts',
  'test/adapters/git-provider/{github,gitlab}/**/*.test.ts',
];

/** Slow files. They begin first, so that no worker is still busy with one when the others have finished. */
const isLong = ({ moduleId }: TestSpecification): boolean => /\.contract\.|crash|\.model\.|server-image|dashboard/.test(moduleId);

/** Slow files come first. They mostly wait, so files without processes come next and use the cores meanwhile. */
const rank = (file: TestSpecification): number => (isLong(file) ? 0 : file.project.config.isolate ? 2 : 1);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- the sort of the sequencer, not of an array
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  resolve: {
    // Examples import the package by its name. In this repository, its name leads to the sources.
    alias: [
      { find: /^skep$/, replacement: `${root}/src/composition/index.ts` },
      { find: /^skep\/client$/, replacement: `${root}/src/client/index.ts` },
      { find: /^skep\/testing$/, replacement: `${root}/test/contracts/index.ts` },
    ],
  },
  test: {
    projects: [
      // The files of a worker share its modules. To import them again for each file would take a third of the CPU time.
      { extends: true, test: { name: 'shared modules', include: withoutProcesses, isolate: false } },
      // These files start many processes. A start takes longer if the worker uses much memory, so each file has a new worker.
      { extends: true, test: { name: 'own modules', include: ['{test,examples}/**/*.test.ts'], exclude: withoutProcesses } },
    ],
    // Only a test that hangs reaches these limits, even on a slow or busy machine.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    // Many tests wait for servers, agents or the engine. One worker more than there are cores keeps the cores busy meanwhile.
    maxWorkers: Math.max(3, availableParallelism() + 1),
    // Programs that tests start reuse compiled modules: to compile them again takes a fifth of the CPU time of a short command.
    // With one malloc arena, a process has less memory, and starting others from it takes a fifth less time in the kernel.
    env: { NODE_COMPILE_CACHE: `${root}/node_modules/.cache/compiled`, MALLOC_ARENA_MAX: '1' },
    sequence: { sequencer: LongestFirst },
  },
});
