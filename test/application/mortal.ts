import { explained } from '../../src/domain/reason.ts';
import { Failure } from '../../src/domain/failure.ts';
import { AgentRefusal } from '../../src/ports/agent-protocol.ts';
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
  /** The ports' methods that were called, in order. */
  readonly calls: string[] = [];
  readonly #faults: Faults;
  readonly #onDeath: () => void;
  readonly #death = Promise.withResolvers<void>();
  isDead = false;

  constructor(faults: Faults, onDeath: () => void = () => {}) {
    this.#faults = faults;
    this.#onDeath = onDeath;
  }

  /** Resolves when the process has died. */
  get died(): Promise<void> {
    return this.#death.promise;
  }

  die(): void {
    if (this.isDead) return;
    this.isDead = true;
    this.#onDeath();
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

  /** Wraps a port for this process. All its methods but `subscribe` must be asynchronous. */
  port<T extends object>(kind: Port, port: T): T {
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function' || typeof name !== 'string') return member;
        if (name === 'subscribe') return (call: (...args: unknown[]) => void) => member.call(target, (...args: unknown[]) => void (this.isDead || call(...args)));
        return (...args: unknown[]) => this.#call(kind, name, () => member.apply(target, args) as Promise<unknown>);
      },
    });
  }

  async #call(port: Port, name: string, call: () => Promise<unknown>): Promise<unknown> {
    noteCall();
    if (this.isDead) return await never();
    this.calls.push(`${port}.${name}`);
    const fault = this.#faults.next(name);
    if (fault?.when === 'before') return await this.#strike(port, fault);
    const settled = call().then((value) => ({ value }), (error: unknown) => ({ error }));
    const outcome = await settled;
    if (this.isDead) return await never();
    if (fault !== null) return await this.#strike(port, fault);
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  }

  async #strike(port: Port, { what }: Fault): Promise<never> {
    if (what !== 'death') throw failureOf(port, what);
    this.die();
    return await never();
  }
}

type Port = 'runtime' | 'executions' | 'sandboxes' | 'conversations' | 'events' | 'git' | 'checkouts' | 'protocol';

const reason = explained('a planted fault');

function failureOf(port: Port, what: 'unavailable' | 'timeout'): Error {
  if (port === 'git' || port === 'checkouts') return new Failure('provider_failed', { provider: 'memory', reason });
  if (port === 'protocol') return new AgentRefusal(reason);
  if (port !== 'runtime') return new Failure('store_unavailable', { reason, retryAfterSeconds: 1 });
  if (what === 'timeout') return new Failure('runtime_timeout', { runtime: 'scripted', limitMs: 1000 });
  return new Failure('runtime_unavailable', { runtime: 'scripted', reason, retryAfterSeconds: 1 });
}
