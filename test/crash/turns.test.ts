import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { acpAgentCommand } from '../doubles/acp-agent/start.ts';
import { acpScript } from '../doubles/acp-agent/steps.ts';
import { type Answer, createClient, items, type Json, object } from '../support/client.ts';
import { messageOf, type ApiEvent } from '../support/conversation.ts';
import { printedSeed, seeded } from '../support/seeded.ts';
import { startServer, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';

/** Each kill or shutdown interrupts one turn of each conversation: 100 turns by kills, and 10 by shutdowns. */
const conversations = 5;
const kills = 20;
const shutdowns = 2;
const longestLifeMs = 700;
const key = 'a-static-key-for-turns';
const env = { SKEP_API_KEY: key, SKEP_LOG_LEVEL: 'error', MODEL_KEY: 'a-secret-of-the-model-1f' };
const agent = { protocol: 'acp', command: acpAgentCommand(), secrets: ['MODEL_KEY'] };
const config = { limits: { requests_per_minute: 1_000_000 }, specs: [{ id: 'agent', command: ['sleep', '100000'], agent }] };
const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }, { optionId: 'no', name: 'No', kind: 'reject_once' }] as const;

let server: Server;
afterAll(async () => {
  if (server === undefined) return;
  await server.close();
});

/** Repeats a request across restarts of the server until it gets a response. */
async function ask(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  for (;;) {
    try {
      const answer = await createClient(server.url, key)(method, path, body, headers);
      if (answer.status < 500) return answer;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
    await pause(5);
  }
}

/** Returns the script of a turn: some work with tool calls, a permission request, and its secret in two parts. */
function scriptOf(turn: number): string {
  const edit = { toolCallId: `edit-${turn}`, title: `Edit ${turn}`, toolKind: 'edit' };
  return acpScript(
    { run: `echo ${turn} >> handed-over.txt` },
    { say: 'I think. ', channel: 'thought' },
    { flood: 20 },
    { run: 'sleep 0.05' },
    { tool: { ...edit, status: 'pending' } },
    { ask: { toolCallId: edit.toolCallId, title: edit.title, options } },
    { run: 'sleep 0.05' },
    { tool: { ...edit, status: 'completed' } },
    { env: 'MODEL_KEY' },
    { usage: { usedTokens: turn, contextTokens: 100, cost: null } },
    { flood: 200 },
    { run: 'sleep 0.05' },
    { say: `done with ${turn}`, messageId: 'last' },
  );
}

async function eventsOf(path: string): Promise<Json[]> {
  const all: Json[] = [];
  for (;;) {
    const page = items(await ask('GET', `${path}/events?after=${Number(all.at(-1)?.['id'] ?? 0)}`));
    all.push(...page);
    if (page.length < 100) return all;
  }
}

/** Answers the permission requests that no policy answers, until the turn of the message has ended. */
async function untilEnd(path: string, messageId: string): Promise<void> {
  for (let after = 0; ; await pause(50)) {
    for (const { id, kind, data } of items(await ask('GET', `${path}/events?after=${after}`)) as unknown as ApiEvent[]) {
      after = id;
      if (kind === 'permission_requested') await ask('POST', `${path}/permissions/${String(data['permission_id'])}`, { option_id: 'yes' });
      if (kind === 'turn_ended' && data['message_id'] === messageId) return;
    }
  }
}

/** Returns a transcript of a turn without ids, times and chunk borders, which differ between turns. */
function transcriptOf(events: readonly Json[], messageId: string, turn: number): readonly string[] {
  const at = (kind: string): number => events.findIndex((event) => event['kind'] === kind && (event['data'] as Json)['message_id'] === messageId);
  const said: { readonly kind: unknown; text: string }[] = [];
  for (const { kind, data } of events.slice(at('turn_started'), at('turn_ended') + 1) as { kind: string; data: Json }[]) {
    // A user message that comes meanwhile belongs to a later turn.
    if (kind === 'conversation_updated' || kind === 'conversation_status' || data['role'] === 'user') continue;
    const { message_id: _, permission_id: __, text = '', ...rest } = data as { text?: string } & Json;
    const last = said.at(-1);
    if (kind === 'message_chunk' && last?.kind === kind + JSON.stringify(rest)) last.text += text;
    else said.push({ kind: kind + JSON.stringify(rest), text });
  }
  return said.map((one) => `${String(one.kind)} ${one.text}`.replaceAll(new RegExp(`(edit-|Edit |done with |used_tokens":)${turn}\\b`, 'g'), '$1N'));
}

/** Sends messages in its own conversation until it is stopped, and checks that no event is lost or repeated. */
class Talker {
  readonly #path: string;
  readonly #messages: string[] = [];

  private constructor(path: string) {
    this.#path = path;
  }

  /** Returns a talker whose first turn has ended. */
  static async begin(policy: string): Promise<Talker> {
    const talker = new Talker(`/api/v1/app-conversations/${String(object(await ask('POST', '/api/v1/app-conversations', { permission_policy: policy }))['id'])}`);
    await until(async () => object(await ask('GET', talker.#path)), ({ start_status: status }) => status === 'READY');
    await untilEnd(talker.#path, await talker.#send());
    return talker;
  }

  /** A next message is always queued while a turn runs. */
  async talkUntil(stop: AbortSignal): Promise<void> {
    let running = await this.#send();
    while (!stop.aborted) {
      const waiting = await this.#send();
      await untilEnd(this.#path, running);
      running = waiting;
    }
    await untilEnd(this.#path, running);
  }

  async #send(): Promise<string> {
    const turn = this.#messages.length;
    const sent = await ask('POST', `${this.#path}/messages`, messageOf(scriptOf(turn)), { 'Idempotency-Key': `turn-${this.#path}-${turn}` });
    const messageId = String(object(sent)['message_id']);
    this.#messages.push(messageId);
    return messageId;
  }

  /** Compares all turns with the first one, which no kill has interrupted. */
  async check(): Promise<void> {
    const events = await eventsOf(this.#path);
    expect(events.filter(({ kind }) => kind === 'turn_ended').map(({ data }) => (data as Json)['stop_reason'])).toEqual(this.#messages.map(() => 'end_turn'));
    const undisturbed = transcriptOf(events, this.#messages[0] ?? '', 0);
    expect(undisturbed.length).toBeGreaterThan(10);
    for (const [turn, messageId] of this.#messages.entries()) expect(transcriptOf(events, messageId, turn), `turn ${turn}`).toEqual(undisturbed);
    const { sandbox_id: sandboxId } = object(await ask('GET', this.#path));
    const handedOver = await readFile(join(server.dataDir, 'sandboxes', String(sandboxId), 'workspace/handed-over.txt'), 'utf8');
    expect(handedOver.trim().split('\n')).toEqual(this.#messages.map((_, turn) => String(turn)));
  }
}

test(`kill -9 ${kills} times and ${shutdowns} shutdowns in ${conversations} conversations lose and repeat no event`, { timeout: 600_000 }, async () => {
  const random = seeded(printedSeed('the moments of the kills'));
  server = await startServer({ env, config });
  const { dataDir } = server;
  const talkers = await Promise.all(Array.from({ length: conversations }, (_, index) => Talker.begin(index < 2 ? 'allow' : 'ask')));
  const ending = new AbortController();
  const talking = Promise.all(talkers.map((talker) => talker.talkUntil(ending.signal)));
  // Prevents an unhandled rejection. The result is awaited at the end.
  talking.catch(() => {});
  for (let end = 0; end < kills + shutdowns; end += 1) {
    await pause(random() * longestLifeMs);
    if (end < kills) await server.kill();
    else expect(await server.stop()).toBe(0);
    server = await startServer({ env, config, dataDir });
  }
  ending.abort();
  await talking;
  for (const talker of talkers) await talker.check();
});
