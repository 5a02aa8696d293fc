import { Failure } from '../domain/failure.ts';
import type { Caller } from '../domain/principal.ts';
import type { Auth } from '../ports/auth.ts';
import type { CheckResult } from '../ports/check-result.ts';
import type { Clock } from '../ports/clock.ts';
import type { Logger } from '../ports/logger.ts';
import type { Random } from '../ports/random.ts';
import type { Conversations } from './conversations/conversations.ts';
import type { Executions } from './executions/executions.ts';
import type { Events } from './events/events.ts';
import type { Files } from './files/files.ts';
import type { Keys } from './keys/keys.ts';
import type { Microagents } from './microagents/microagents.ts';
import type { Overview } from './overview/get-overview.ts';
import type { Repositories } from './repositories/repositories.ts';
import type { Sandboxes } from './sandboxes/sandboxes.ts';
import type { SandboxSpecs } from './sandboxes/sandbox-specs.ts';

export interface ComponentCheck extends CheckResult {
  /** The component: `store`, `runtime`, `git`, `checkout`. */
  readonly part: string;
  /** The adapter: `sqlite`, `process`, `local`. */
  readonly adapter: string;
}

export interface Component extends Pick<ComponentCheck, 'part' | 'adapter'> {
  /** Never fails. */
  readonly check: () => Promise<CheckResult>;
}

/** The failure of new requests and endless streams during shutdown. */
export const shuttingDown = new Failure('shutting_down', { retryAfterSeconds: 5 });

/** The use cases of a deployment. Entry adapters call them. */
export interface Skep {
  readonly microagents: Microagents;
  readonly repositories: Pick<Repositories, 'search' | 'branches'>;
  readonly sandboxes: Sandboxes;
  readonly executions: Executions;
  readonly files: Files;
  readonly conversations: Conversations;
  readonly events: Events;
  readonly specs: SandboxSpecs;
  readonly keys: Keys;
  /** Returns a summary of the deployment, or of the part that one owner may see. */
  readonly overview: (caller: Caller | null) => Promise<Overview>;
  readonly auth: Auth;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Entry adapters seal data with this secret that a client keeps and sends back. No client ever gets the secret itself. */
  readonly secret: string;

  /** The store, the runtime, the git providers and the git mirror, in this order. */
  readonly parts: readonly Component[];

  check(): Promise<readonly ComponentCheck[]>;

  /** Fires with {@link shuttingDown} at the call of `close`. Entry adapters end their endless streams then, and refuse requests. */
  readonly closing: AbortSignal;

  /** Stops the deployment. Closes the adapters that it opened itself, and no others. Sandboxes keep running. Idempotent. */
  close(): Promise<void>;
}
