import type { Clock } from '../../../ports/clock.ts';
import type { Logger } from '../../../ports/logger.ts';
import type { Random } from '../../../ports/random.ts';
import type { SkepOptions } from '../../options.ts';

export async function openClock({ clock }: SkepOptions): Promise<Clock> {
  if (clock !== undefined) return clock;
  const { createSystemClock } = await import('../../../adapters/clock/system-clock.ts');
  return createSystemClock();
}

export async function openRandom({ random }: SkepOptions): Promise<Random> {
  if (random !== undefined) return random;
  const { createSystemRandom } = await import('../../../adapters/random/system-random.ts');
  return createSystemRandom();
}

/** Without a logger, nothing is logged: an embedder's streams are its own. */
export async function openLogger({ logger }: SkepOptions): Promise<Logger> {
  if (logger !== undefined) return logger;
  const { createSilentLogger } = await import('../../../adapters/logger/silent-logger.ts');
  return createSilentLogger();
}
