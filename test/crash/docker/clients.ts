import { setTimeout as pause } from 'node:timers/promises';
import { createClient, object, type Answer, type Client } from '../../support/client.ts';
import { below } from '../../support/seeded.ts';
import { judgeListing, judgeRefusal, type OwnersLimits } from './judge.ts';
import { Known, tell, type Ledger } from './ledger.ts';

/** The time from a start of the server until its kill. */
export interface Life {
  readonly url: string;
  /** True if the server is about to be killed, or the callers must stop. */
  over: boolean;
  /** True if the engine was down at any time in this life. */
  engineAway: boolean;
  answers: number;
}

export interface Caller {
  readonly owner: string;
  readonly key: string;
  readonly random: () => number;
}

/** Starts, pauses, resumes and deletes at random until the life is over. Writes mistakes to the ledger, and never rejects. */
export async function callAtRandom(caller: Caller, life: Life, ledger: Ledger, limits: OwnersLimits, specs: readonly string[]): Promise<void> {
  const client = createClient(life.url, caller.key);
  const call: Client = async (...request) => {
    // The server of another test may get the port of a killed one.
    if (life.over) throw new Error('the server is killed');
    const answer = await client(...request);
    life.answers += 1;
    tell(ledger, `${request[0]} ${answer.status}`);
    return answer;
  };
  while (!life.over && ledger.wrong.length === 0) {
    try {
      await oneRequest(caller, call, life, ledger, limits, specs);
    } catch (error) {
      const { name, message } = error as Error;
      // A request to a stopped engine may stay without a response until the server is killed.
      const lost = life.over || (life.engineAway && name === 'TimeoutError');
      if (!lost) ledger.wrong.push(`without an answer, though the server lives: ${name}: ${message}`);
    }
    // The pause leaves CPU time for the server.
    await pause(below(caller.random, 40));
  }
}

async function oneRequest({ owner, random }: Caller, call: Client, life: Life, ledger: Ledger, limits: OwnersLimits, specs: readonly string[]): Promise<void> {
  const list = (): Promise<void> => judgeListing(ledger, owner, limits, () => call('GET', '/api/v1/sandboxes/search?limit=100'));
  const [dice, choice, detail, kind] = [random(), random(), random(), random()];
  if (dice < 0.25) {
    const answer = await call('POST', '/api/v1/sandboxes', { sandbox_spec_id: specs[Math.floor(choice * specs.length)] });
    if (answer.status !== 201) return refused(answer, null, life, ledger);
    ledger.sandboxes.set(String(object(answer)['id']), new Known(owner));
    return await list();
  }
  const pauses = dice < 0.55;
  const deletes = dice > 0.8;
  // Mostly a valid call, sometimes any call, rarely a call for a deleted sandbox.
  const fits = ({ deletion, status }: Known): boolean => {
    if (deletion === 'acknowledged') return detail < 0.02;
    return deletes || (deletion === 'none' && (detail > 0.8 || status === (pauses ? 'RUNNING' : 'PAUSED')));
  };
  const there = [...ledger.sandboxes].filter(([, known]) => known.owner === owner && fits(known));
  const [id, known] = there[Math.floor(choice * there.length)] ?? [];
  if (id === undefined || known === undefined || dice > 0.93) return await list();
  if (deletes) return await remove(id, known, call, ledger);
  const answered = known.ask();
  const answer = pauses
    ? await call('POST', `/api/v1/sandboxes/${id}/pause`, { pause_kind: kind < 0.5 ? 'freeze' : 'stop' })
    : await call('POST', `/api/v1/sandboxes/${id}/resume`);
  answered(answer.status === 200 ? object(answer) : null);
  if (answer.status !== 200) return refused(answer, known, life, ledger);
  tell(ledger, String(object(answer)['status']));
  await list();
}

async function remove(id: string, known: Known, call: Client, ledger: Ledger): Promise<void> {
  if (known.deletion === 'none') known.deletion = 'asked';
  const { status, body } = await call('DELETE', `/api/v1/sandboxes/${id}`);
  if (status === 204) known.deletion = 'acknowledged';
  else ledger.wrong.push(`deleting ${id} answered ${status} ${JSON.stringify(body)}`);
}

function refused(answer: Answer, known: Known | null, { engineAway }: Life, ledger: Ledger): void {
  const wrong = judgeRefusal(answer, { engineAway, deleting: known !== null && known.deletion !== 'none' });
  if (wrong !== null) ledger.wrong.push(wrong);
  else tell(ledger, String(object(answer)['code']));
}
