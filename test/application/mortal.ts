import { explained } from '../../src/domain/reason.ts';
import { Failure } from '../../src/domain/failure.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { noteCall } from './port-calls.ts';

/** How a call on a port fails: it is refused, it times out, or its process dies. Before or after the call has its effect. */
export interface Fault {
  /** The next call of this name, such as `start` or `replace`. Null: the next call of any name. */
  readonly call: string | null;
  readonly what: 'unavailable' | 'timeout' | 'death';
  readonly when: 'before' | 'after';
  /** How many matching calls succeed first. Default: none. */
  readonly skip?: number;
}

/** The planned faults, in order, for the calls of all processes. */
export class Faults {
  readonly planned: Fault[] = [];

  plan(...faults: readonly Fault[]): void {
    this.planned.push(...faults);
  }

  next(call: string): Fault | null {
    const index = this.planned.findIndex((fault) => fault.call === null || fault.call === call);
    const fault = this.planned[index];
    if (fault === undefined) return null;
    const skip = fault.skip ?? 0;
    if (skip > 0) this.planned[index] = { ...fault, skip: skip - 1 };
    else this.planned.splice(index, 1);
    return skip > 0 ? null : fault;
  }
}

/** A new promise for each caller, so that waiting callers are not kept in memory. */
const never = (): Promise<never> => new Promise(() => {});

/**
 * A process of Skep, seen from its ports. After its death, its pending calls never return, its new calls have no effect,
 * and its timers and listeners are not called.
 */
export class Mortal {
  readonly #faults: Faults;
  readonly #death = Promise.withResolvers<void>();
  isDead = false;

  constructor(faults: Faults) {
    this.#faults = faults;
  }

  /** Resolves when the process has died. */
  get died(): Promise<void> {
    return this.#death.promise;
  }

  die(): void {
    this.isDead = true;
    this.#death.resolve();
  }

  clock(clock: Clock): Clock {
    return {
      now: () => clock.now(),
      after: (ms, callback) => clock.after(ms, () => {
        if (!this.isDead) callback();
      }),
    };
  }

  /** Wraps a port for this process. `failure` creates the failure of a planned fault. */
  port<T extends object>(port: T, failure: (what: 'unavailable' | 'timeout') => Failure): T {
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function' || typeof name !== 'string') return member;
        if (name === 'subscribe') return (call: (...args: unknown[]) => void) => member.call(target, (...args: unknown[]) => void (this.isDead || call(...args)));
        return (...args: unknown[]) => this.#call(name, () => member.apply(target, args) as Promise<unknown>, failure);
      },
    });
  }

  async #call(name: string, call: () => Promise<unknown>, failure: (what: 'unavailable' | 'timeout') => Failure): Promise<unknown> {
    noteCall();
    if (this.isDead) return await never();
    const fault = this.#faults.next(name);
    if (fault?.when === 'before') return await this.#strike(fault, failure);
    const settled = call().then((value) => ({ value }), (error: unknown) => ({ error }));
    const outcome = await settled;
    if (this.isDead) return await never();
    if (fault !== null) return await this.#strike(fault, failure);
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  }

  async #strike({ what }: Fault, failure: (what: 'unavailable' | 'timeout') => Failure): Promise<never> {
    if (what !== 'death') throw failure(what);
    this.die();
    return await never();
  }
}

export function storeFailure(): Failure<'store_unavailable'> {
  return new Failure('store_unavailable', { reason: explained('a planted fault'), retryAfterSeconds: 1 });
}

export function runtimeFailure(what: 'unavailable' | 'timeout'): Failure {
  return what === 'timeout'
    ? new Failure('runtime_timeout', { runtime: 'scripted', limitMs: 1000 })
    : new Failure('runtime_unavailable', { runtime: 'scripted', reason: explained('a planted fault'), retryAfterSeconds: 1 });
}
