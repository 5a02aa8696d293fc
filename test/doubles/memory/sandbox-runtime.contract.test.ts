import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/domain/failure.ts';
import { stageCases } from '../../contracts/sandbox-runtime-harness.ts';
import { callOverlapCases } from '../../contracts/sandbox-runtime-overlaps.ts';
import { processCases, sandboxRuntimeContract } from '../../contracts/sandbox-runtime.ts';
import { createRuntimeHarness, type RuntimeChange, runtimeTraits } from './contract-harness.ts';

const cannotFreeze: RuntimeChange = (runtime, engine) => {
  engine.canFreeze = false;
  return runtime;
};

describe('Sandbox runtime contract: in memory', () => {
  for (const { name, run } of sandboxRuntimeContract(() => createRuntimeHarness(), runtimeTraits)) test(name, run);
});

describe('Sandbox runtime contract: in memory, unable to freeze', () => {
  const contract = sandboxRuntimeContract(() => createRuntimeHarness(cannotFreeze), { ...runtimeTraits, freeze: false });
  for (const { name, run } of contract) test(name, run);
});

const refusingFreeze = (refuses: () => boolean): RuntimeChange => (runtime) => {
  const freeze = runtime.freeze.bind(runtime);
  runtime.freeze = async (id) => {
    if (refuses()) throw new Failure('runtime_unavailable', { runtime: 'memory', reason: { code: 'freeze_refused' }, retryAfterSeconds: 1 });
    return await freeze(id);
  };
  return runtime;
};

describe('Sandbox runtime contract: in memory, refusing every second freeze', () => {
  let freezes = 0;
  const refusesSecond = refusingFreeze(() => (freezes += 1) % 2 === 1);
  const cases = stageCases(() => createRuntimeHarness(refusesSecond), runtimeTraits, [...callOverlapCases, ...processCases]);
  for (const { name, run } of cases) test(name, run);
});

test('the sandbox runtime contract fails for a runtime that refuses every freeze', async () => {
  const cases = sandboxRuntimeContract(() => createRuntimeHarness(refusingFreeze(() => true)), runtimeTraits);
  const found = cases.find(({ name }) => name.startsWith('freeze holds all processes'));
  await expect(found?.run()).rejects.toMatchObject({ context: { reason: { code: 'freeze_refused' } } });
});
