export { createSystemClock } from './clock.ts';
export { createSystemRandom } from './random.ts';
