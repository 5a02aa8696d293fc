import { runningStatuses } from '../../../src/domain/sandbox-lifecycle.ts';
import type { SandboxStatus } from '../../../src/domain/sandbox.ts';
import { httpStatusOf, type ProblemCode } from '../../../src/adapters/http/problems.ts';
import { object, type Answer, type Json } from '../../support/client.ts';
import { tell, type Held, type Ledger } from './ledger.ts';

/** The failures that a caller may get. */
const tolerated = new Set(['sandbox_not_found', 'sandbox_busy', 'sandbox_not_running', 'sandbox_not_paused', 'sandbox_limit_reached', 'runtime_unavailable', 'runtime_timeout']);
const runtimeFailures = new Set(['runtime_unavailable', 'runtime_timeout']);

export interface OwnersLimits {
  readonly running: number;
  readonly existing: number;
}

/** Returns what is wrong with a failed response, or null. `engineAway`: was the engine down at any time in this life? */
export function judgeRefusal({ status, body }: Answer, { engineAway, deleting }: { engineAway: boolean; deleting: boolean }): string | null {
  const shown = `${status} ${JSON.stringify(body)}`;
  const { code, detail } = (typeof body === 'object' && body !== null ? body : {}) as Json;
  if (typeof code !== 'string' || typeof detail !== 'string' || !tolerated.has(code)) return `no failure that a caller may get: ${shown}`;
  if (httpStatusOf(code as ProblemCode) !== status) return `not the status of its code: ${shown}`;
  if (code === 'sandbox_not_found' && !deleting) return `nobody deleted it: ${shown}`;
  if (runtimeFailures.has(code) && !engineAway) return `the engine was there: ${shown}`;
  return null;
}

/** Checks the listing of an owner. Ignores sandboxes that callers change meanwhile. */
export async function judgeListing(ledger: Ledger, owner: string, limits: OwnersLimits, ask: () => Promise<Answer>): Promise<void> {
  const before = [...ledger.sandboxes].filter(([, known]) => known.owner === owner).map(([id, known]) => ({ id, known, held: known.held, deletion: known.deletion }));
  const { engineDeaths } = ledger;
  const answer = await ask();
  const wrong = (what: string, about: unknown): void => void ledger.wrong.push(`${what}: ${JSON.stringify(about)}`);
  if (answer.status !== 200) return wrong('the listing failed', answer);
  const listed = new Map((object(answer)['items'] as Json[]).map((item) => [String(item['id']), item]));
  const items = [...listed.values()];
  if (items.length > limits.existing) wrong('more exist than may', items);
  if (items.filter(({ status }) => runningStatuses.has(status as SandboxStatus)).length > limits.running) wrong('more run than may', items);
  for (const item of items) if ((item['status'] === 'ERROR' || item['status'] === 'MISSING') && ledger.engineDeaths === 0) wrong('the death of a server cost a sandbox', item);

  for (const { id, known, held, deletion } of before) {
    const item = listed.get(id);
    if (deletion === 'acknowledged' && item !== undefined) wrong('deleted, and there', item);
    if (known.deletion === 'none' && item === undefined) wrong('acknowledged, and not there', id);
    if (item !== undefined) known.status = String(item['status']);
    if (item === undefined || held === null || known.held !== held) continue;
    tell(ledger, 'looked at again');
    if (!isKept(held, item, engineDeaths === 0 && ledger.engineDeaths === 0)) wrong(`acknowledged as ${JSON.stringify(held)}, and not kept`, item);
  }
}

/** Only a kill of the engine may stop a sandbox. Then the files are kept, and the detail gives the reason. */
function isKept(held: Held, item: Json, engineLived: boolean): boolean {
  const { status, pause_kind: kind, status_detail: detail } = item;
  if (status === held.status && (kind ?? null) === held.pauseKind) return true;
  if (engineLived || held.pauseKind === 'stop') return false;
  return (status === 'PAUSING' || status === 'PAUSED') && kind === 'stop' && typeof detail === 'string' && detail !== '';
}
