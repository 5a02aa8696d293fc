import { explained } from '../../../src/domain/reason.ts';
import { Failure } from '../../../src/domain/failure.ts';
import { AgentRefusal } from '../../../src/ports/agent-protocol.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import { noteCall } from '../port-calls.ts';

const never = new Promise<never>(() => {});

/** What happens to a process of Skep at one of its calls on a port, before or after the call has its effect. */
export interface Mishap {
  readonly call: number;
  readonly when: 'before' | 'after';
  /** The process is killed, or the call fails and the process continues. */
  readonly kind: 'kill' | 'fail';
}

/** A process of Skep that can be killed. After that, none of its calls has an effect or returns. */
export class Mortal {
  /** The ports' methods that were called, in order. */
  readonly calls: string[] = [];
  #mishap: Mishap | null;
  readonly #onDeath: (() => void)[] = [];
  #dead = false;

  constructor(mishap: Mishap | null = null) {
    this.#mishap = mishap;
  }

  get dead(): boolean {
    return this.#dead;
  }

  kill(): void {
    if (this.#dead) return;
    this.#dead = true;
    for (const end of this.#onDeath) end();
  }

  /** Drops the planned mishap. */
  spare(): void {
    this.#mishap = null;
  }

  onDeath(end: () => void): void {
    this.#onDeath.push(end);
  }

  /** Wraps a port for this process. */
  port<T extends object>(name: string, port: T): T {
    return new Proxy(port, {
      get: (target, property) => {
        const member: unknown = Reflect.get(target, property, target);
        if (typeof member !== 'function') return member;
        const method = member.bind(target) as (...args: unknown[]) => unknown;
        if (property === 'subscribe') return (listener: (told: unknown) => void) => method((told: unknown) => void (this.#dead || listener(told)));
        return (...args: unknown[]) => this.#call(`${name}.${String(property)}`, method, args);
      },
    });
  }

  clock(clock: Clock): Clock {
    return { now: () => clock.now(), after: (ms, callback) => clock.after(ms, () => void (this.#dead || callback())) };
  }

  #call(name: string, method: (...args: unknown[]) => unknown, args: unknown[]): unknown {
    noteCall();
    if (this.#dead) return never;
    this.calls.push(name);
    const mishap = this.#mishap?.call === this.calls.length ? this.#mishap : null;
    if (mishap?.when === 'before') return this.#strike(name, mishap);
    const result = method(...args);
    if (mishap !== null) return result instanceof Promise ? result.then(() => this.#strike(name, mishap)) : this.#strike(name, mishap);
    if (!(result instanceof Promise)) return this.#dead ? never : result;
    return result.then((value: unknown) => (this.#dead ? never : value), (error: unknown) => {
      if (this.#dead) return never;
      throw error;
    });
  }

  #strike(name: string, { kind }: Mishap): Promise<never> {
    if (kind === 'fail') return Promise.reject(failureOfPort(name.slice(0, name.indexOf('.'))));
    this.kill();
    return never;
  }
}

/** Returns the failure of a port that does not answer. */
function failureOfPort(port: string): Error {
  if (port === 'runtime') return new Failure('runtime_unavailable', { runtime: 'memory', reason: explained('a planted fault'), retryAfterSeconds: 1 });
  if (port === 'git' || port === 'checkouts') return new Failure('provider_failed', { provider: 'memory', reason: explained('a planted fault') });
  if (port === 'protocol') return new AgentRefusal(explained('a planted fault'));
  return new Failure('store_unavailable', { reason: explained('a planted fault'), retryAfterSeconds: 1 });
}
