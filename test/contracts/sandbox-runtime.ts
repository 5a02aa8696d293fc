import type { ContractCase } from './contract.ts';
import { eventCases } from './sandbox-runtime-events.ts';
import { executeCases } from './sandbox-runtime-execute.ts';
import { executionEndCases } from './sandbox-runtime-execution-ends.ts';
import { fileBreakCases } from './sandbox-file-breaks.ts';
import { filePathCases } from './sandbox-file-paths.ts';
import { sandboxFileCases } from './sandbox-files.ts';
import { fileCases } from './sandbox-runtime-files.ts';
import { stageCases, type SandboxRuntimeHarness, type SandboxRuntimeTraits } from './sandbox-runtime-harness.ts';
import { logCases } from './sandbox-runtime-logs.ts';
import { callOverlapCases, processOverlapCases } from './sandbox-runtime-overlaps.ts';
import { pauseCases } from './sandbox-runtime-pauses.ts';
import { startCases } from './sandbox-runtime-start.ts';
import { survivalCases } from './sandbox-runtime-survival.ts';

/** The cases that depend on how a runtime finds, holds and ends processes. */
export const processCases = [
  ...pauseCases,
  ...processOverlapCases,
  ...survivalCases,
  ...eventCases,
  ...executionEndCases,
];

/**
 * The contract of every sandbox runtime. The sandboxes run real programs if the runtime runs programs. If starting a sandbox is costly,
 * `createSharing` creates the harness of the cases that can share one.
 */
export function sandboxRuntimeContract(
  createHarness: () => Promise<SandboxRuntimeHarness>, traits: SandboxRuntimeTraits, createSharing = createHarness,
): ContractCase[] {
  const cases = [
    ...startCases,
    ...callOverlapCases,
    ...processCases,
    ...executeCases,
    ...fileCases,
    ...sandboxFileCases,
    ...fileBreakCases,
    ...filePathCases,
    ...logCases,
  ];
  return stageCases(createHarness, traits, cases, createSharing);
}
