import { afterAll, test } from 'vitest';
import {
  executionCases, executionCommands, type ExecutionsCase, type SandboxExecutionsHarness, type SandboxExecutionsTraits,
} from '../../../contracts/sandbox-executions-harness.ts';
import { basicCases, sandboxExecutionsContract } from '../../../contracts/sandbox-executions.ts';
import { slowReaderCases } from '../../../contracts/sandbox-executions-slow-readers.ts';
import { survivalCases } from '../../../contracts/sandbox-executions-survival.ts';
import { tamperedCases } from '../../../contracts/sandbox-executions-tampered.ts';
import { terminalCases } from '../../../contracts/sandbox-executions-terminals.ts';
import type { SandboxLaunch } from '../../../../src/ports/sandbox-runtime.ts';
import { defaultIsolation, type SandboxSpec } from '../../../../src/domain/sandbox-spec.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';

interface Variant {
  readonly name: string;
  readonly changes: Partial<SandboxSpec>;
  readonly program?: readonly string[];
  readonly durable?: boolean;
  readonly terminals: 'durable' | 'attached';
  /** The cases that the variant decides. Default: all. */
  readonly cases?: readonly ExecutionsCase[];
}

/** Enough processes for what the cases leave behind in a sandbox that they share. */
const resources = { ...launchOf(null).spec.resources, pids: 512 };
const readOnly = { readOnlyRoot: true, user: '1234:1234' };
/** Takes a program away before anything is executed, since no image without it is at hand. */
const withoutFifos = shell('rm -f "$(command -v mkfifo)"; touch /workspace/gone; exec sleep 100000');

const variants: readonly Variant[] = [
  { name: 'an image with busybox', changes: { image: images.tiny }, terminals: 'attached' },
  {
    name: 'an image of Debian, a read-only root and another user',
    changes: { image: images.debian, isolation: { ...defaultIsolation, ...readOnly } },
    terminals: 'durable',
    cases: [...terminalCases, ...survivalCases, ...tamperedCases],
  },
  {
    name: 'an image without mkfifo',
    changes: { image: images.debian },
    program: withoutFifos,
    durable: false,
    terminals: 'attached',
    cases: [...basicCases, ...slowReaderCases],
  },
];

for (const { name, changes, program = shell('exec sleep 100000'), durable = true, terminals, cases } of variants) {
  const launch = (): SandboxLaunch => launchOf(program, { resources, ...changes });
  describeWithDocker(`Executions contract: Docker, with ${name}`, () => {
    const engine = createEngine();
    afterAll(() => engine.close());
    const shared = engine.share(launch);
    const createHarness = async (): Promise<SandboxExecutionsHarness> => ({
      open: async () => engine.open(),
      launch,
      shared,
      commands: executionCommands,
      folder: () => '/tmp/.skep-executions',
      // A volume is not in the layer of the container.
      readFile: async (id, file) =>
        changes.isolation?.readOnlyRoot === true
          ? (await engine.ask(id, `cat /workspace/${file} 2>/dev/null`)) || null
          : engine.readFile(id, `/workspace/${file}`),
      close: engine.clear,
    });
    const traits: SandboxExecutionsTraits = { freeze: true, durable, terminals, folder: durable ? 'visible' : 'hidden' };
    const contract = cases === undefined ? sandboxExecutionsContract(createHarness, traits) : executionCases(createHarness, traits, cases);
    for (const { name, run } of contract) test(name, run);
  });
}
