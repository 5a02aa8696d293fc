import type { Auth } from '../ports/auth.ts';
import type { CheckResult } from '../ports/check-result.ts';
import type { Clock } from '../ports/clock.ts';
import type { Logger } from '../ports/logger.ts';
import type { Random } from '../ports/random.ts';
import type { Conversations } from './conversations/conversations.ts';
import type { Events } from './events/events.ts';
import type { Microagents } from './microagents/list-microagents.ts';
import type { Sandboxes } from './sandboxes/sandboxes.ts';
import type { SandboxSpecs } from './sandboxes/sandbox-specs.ts';

/** One part of a deployment and whether it answers. */
export interface PartCheck extends CheckResult {
  /** `store`, `runtime`, `git`. */
  readonly part: string;
  /** The adapter: `sqlite`, `process`, `local`. */
  readonly adapter: string;
}

/** Everything that a deployment of Skep can do; what driving adapters stand on. */
export interface Skep {
  readonly microagents: Microagents;
  readonly sandboxes: Sandboxes;
  readonly conversations: Conversations;
  readonly events: Events;
  readonly specs: SandboxSpecs;
  readonly auth: Auth;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;

  /** Asks every part whether it answers. Never fails. */
  check(): Promise<readonly PartCheck[]>;

  /** Ends what it does and holds open; sandboxes go on. Idempotent. */
  close(): Promise<void>;
}
