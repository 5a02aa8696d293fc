import { explained } from '../../src/domain/reason.ts';
import { Failure } from '../../src/domain/failure.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { noteCall } from './port-calls.ts';

/** What goes wrong with a call on a port: it is refused or times out, or its process ends; before it had its effect or after. */
export interface Fault {
  /** `start`, `replace`...: the next call of this name; of any name where it is null. */
  readonly call: string | null;
  readonly what: 'unavailable' | 'timeout' | 'death';
  readonly when: 'before' | 'after';
  /** So many calls that it could concern are let pass first. Default: none. */
  readonly skip?: number;
}

/** What goes wrong next, in order, whoever makes the call. */
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

/** Each its own, so that nothing is kept that waits for it. */
const never = (): Promise<never> => new Promise(() => {});

/**
 * A process of Skep as its ports see it. When it dies, what it called is never answered, nothing more of what it calls
 * has an effect, and no timer or listener of its calls back.
 */
export class Mortal {
  readonly #faults: Faults;
  readonly #death = Promise.withResolvers<void>();
  isDead = false;

  constructor(faults: Faults) {
    this.#faults = faults;
  }

  /** Answers when it has died. */
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

  /** The port as this process has it. `failure` is what a fault of the port is. */
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
