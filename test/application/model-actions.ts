import fc from 'fast-check';
import { pauseKinds, type PauseKind } from '../../src/domain/sandbox.ts';
import type { Gate } from './engine.ts';
import type { Fault } from './mortal.ts';

/** What clients, the host and the operator do. `which` selects one of the sandboxes started so far, `who` a process. */
export type Action =
  | { readonly kind: 'start'; readonly owner: string; readonly spec: string; readonly who: number }
  | { readonly kind: 'pause'; readonly which: number; readonly pauseKind: PauseKind; readonly who: number }
  | { readonly kind: 'resume' | 'delete'; readonly which: number; readonly who: number }
  | { readonly kind: 'crash' | 'vanish' | 'end' | 'freeze'; readonly container: number }
  | { readonly kind: 'restart-engine' | 'switch-engine' }
  | { readonly kind: 'mute'; readonly isMute: boolean }
  /** The engine loses, or gains, the ability to freeze. */
  | { readonly kind: 'ability'; readonly canFreeze: boolean }
  | { readonly kind: 'gate'; readonly gate: Gate; readonly isOpen: boolean }
  | { readonly kind: 'fault'; readonly fault: Fault }
  /** A process with the deployment's specs, or with a changed spec of the pool. */
  | { readonly kind: 'boot'; readonly isChanged: boolean }
  | { readonly kind: 'shutdown'; readonly who: number }
  | { readonly kind: 'sweep'; readonly who: number }
  | { readonly kind: 'advance'; readonly ms: number };

const which = fc.nat(7);
const who = fc.nat(1);
const constant = <T>(value: T) => fc.constant(value);

/** Calls that change a sandbox are listed more often, because most calls only read. */
const calls = [
  'start', 'freeze', 'stop', 'resume', 'resume', 'handOut',
  'provide', 'start', 'freeze', 'stop', 'resume', 'remove', 'inspect', 'list',
  'insert', 'handOut', 'insertPooled', 'pooled', 'replace', 'admit', 'find', 'findByInstance', 'longestIdle', 'scan',
];

const when = fc.constantFrom('before', 'after' as const);
const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ call: fc.constantFrom(...calls), what: fc.constantFrom('unavailable', 'timeout', 'death' as const), when }) },
  // The process dies at any call.
  { weight: 2, arbitrary: fc.record({ call: constant(null), what: constant('death' as const), when, skip: fc.nat(30) }) },
);

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: constant('start' as const), owner: fc.constantFrom('me', 'you'), spec: fc.constantFrom('plain', 'timed', 'warm'), who }) },
  { weight: 5, arbitrary: fc.record({ kind: constant('pause' as const), which, pauseKind: fc.constantFrom(...pauseKinds), who }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom('resume', 'resume', 'delete' as const), which, who }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('crash', 'vanish', 'end', 'freeze' as const), container: which }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('restart-engine', 'switch-engine' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: constant('mute' as const), isMute: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: constant('ability' as const), canFreeze: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: constant('gate' as const), gate: fc.constantFrom('provide', 'start', 'ready' as const), isOpen: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ kind: constant('fault' as const), fault }) },
  { weight: 2, arbitrary: fc.record({ kind: constant('boot' as const), isChanged: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('shutdown', 'sweep' as const), who }) },
  { weight: 3, arbitrary: fc.record({ kind: constant('advance' as const), ms: fc.nat(9000) }) },
);

export interface Scenario {
  /** The actions of one batch run at the same time. */
  readonly batches: readonly (readonly Action[])[];
  /** The gate that stays closed after all other faults have ended. */
  readonly stuck: Gate | null;
}

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  batches: fc.array(fc.array(action, { minLength: 1, maxLength: 5, size: 'max' }), { maxLength: 18, size: 'max' }),
  stuck: fc.constantFrom(null, null, null, 'start' as const, 'ready' as const),
});
