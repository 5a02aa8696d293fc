import { describe, expect, test } from 'vitest';
import type { api } from '../../src/client/index.ts';
import { Transcript } from '../../src/dashboard/conversation/transcript.ts';

let nextId = 1;

function event<K extends api.Event['kind']>(kind: K, data: Extract<api.Event, { kind: K }>['data']): api.Event {
  const at = '2026-01-01T00:00:00Z';
  return { id: nextId++, at, kind, data, conversation_id: 'c', sandbox_id: 's', owner_id: 'ann', actor: 'agent', user_id: null, reason: null, status_reason: null } as api.Event;
}

const said = (id: string, text: string) => event('message', { message_id: id, role: 'agent', channel: 'answer', text });
const part = (id: string, text: string) => event('message_chunk', { message_id: id, channel: 'answer', text });
const asked = (id: string) => event('message', { message_id: id, role: 'user', channel: 'answer', text: id });
const started = (id: string) => event('turn_started', { message_id: id });
const ended = (id: string, stop: api.TurnEndedEventData['stop_reason'] = 'end_turn', code?: string): api.Event =>
  ({ ...event('turn_ended', { message_id: id, stop_reason: stop }), status_reason: code === undefined ? null : { code } });
const call = (id: string, status: 'in_progress' | 'completed') =>
  event('tool_call', { tool_call_id: id, title: id, tool_kind: 'read', status, paths: [], content: [] });

function transcriptOf(...events: readonly api.Event[]): Transcript {
  const transcript = new Transcript();
  for (const one of events) transcript.apply(one);
  return transcript;
}

const textsOf = (transcript: Transcript) =>
  transcript.arranged().rows.map((entry) => (entry.kind === 'message' ? [entry.fate, entry.text].join(' ').trim() : entry.kind));
const waitingIn = (transcript: Transcript) => transcript.arranged().waiting.map(({ text }) => text);

describe('a transcript', () => {
  test('joins the parts of a message until the whole message comes', () => {
    expect(textsOf(transcriptOf(part('m', 'Hel'), part('m', 'lo'), said('m', 'Hello.'), part('m', 'late')))).toEqual(['Hello.']);
  });

  test('shows a tool call once with its last status, and another one if a later turn uses its id', () => {
    const { rows } = transcriptOf(started('1'), call('t', 'in_progress'), call('t', 'completed'), started('2'), call('t', 'in_progress')).arranged();
    expect(rows.map((entry) => entry.kind === 'tool' && entry.call.status)).toEqual(['completed', 'in_progress']);
  });

  test('shows a message where its turn began, after the answers to earlier ones, and what waits apart', () => {
    const transcript = transcriptOf(asked('a'), started('a'), asked('b'), asked('c'), asked('d'), said('m', 'to a'), ended('a'), started('b'));
    expect([textsOf(transcript), waitingIn(transcript)]).toEqual([['a', 'to a', 'b'], ['c', 'd']]);
    transcript.apply(ended('d', 'cancelled', 'message_withdrawn'));
    transcript.apply(said('n', 'to b'));
    expect([textsOf(transcript), waitingIn(transcript)]).toEqual([['a', 'to a', 'b', 'Withdrawn d', 'to b'], ['c']]);
  });

  test('shows that a message was dropped: one before another that was started, or all that wait when a conversation ends', () => {
    const transcript = transcriptOf(asked('a'), asked('b'), started('b'), asked('c'), ended('b', 'interrupted', 'messages_dropped'));
    transcript.apply(asked('d'));
    transcript.apply(event('conversation_archived', {}));
    expect(textsOf(transcript)).toEqual(['Not delivered a', 'b', 'Not delivered c', 'note', 'Not delivered d', 'note']);
    expect(waitingIn(transcript)).toEqual([]);
  });

  test('shows a message that is sent again as waiting, until its next turn or until it is withdrawn', () => {
    const requeued = ended('a', 'interrupted', 'message_requeued');
    const transcript = transcriptOf(requeued);
    transcript.prepend([asked('a'), asked('b'), started('a')]);
    expect([textsOf(transcript), waitingIn(transcript)]).toEqual([['note'], ['a', 'b']]);
    expect(transcript.arranged().rows).toMatchObject([{ isBad: false }]);
    transcript.apply(ended('a', 'cancelled', 'message_withdrawn'));
    expect([textsOf(transcript), waitingIn(transcript)]).toEqual([['note', 'Withdrawn a'], ['b']]);
    expect(textsOf(transcriptOf(asked('a'), started('a'), requeued, started('a'), said('m', 'to a')))).toEqual(['note', 'a', 'to a']);
  });

  test('has a note of how a turn ended, unless it ended normally', () => {
    const transcript = transcriptOf(asked('first'), started('first'));
    const count = transcript.arranged().rows.length;
    for (const stop of ['end_turn', 'cancelled', 'failed'] as const) transcript.apply(ended('first', stop));
    expect(transcript.arranged().rows.slice(count)).toMatchObject([
      { kind: 'note', text: 'The turn ended: cancelled.', isBad: false }, { kind: 'note', text: 'The turn ended: failed.', isBad: true },
    ]);
  });

  test('shows which microagents the agent got, and why others were left out', () => {
    const given = [{ path: '.skep/microagents/repo.md', trigger: null }];
    const leftOut = [{ path: 'a.md', why: 'too_large' as const }];
    const { rows } = transcriptOf(
      event('microagents', { given, left_out: leftOut, left_out_count: 3 }), event('microagents', { given: [], left_out: [], left_out_count: 0 }),
    ).arranged();
    expect(rows).toMatchObject([
      { kind: 'note', text: 'The agent got 1 microagent: .skep/microagents/repo.md. Left out: a.md (too large) and 2 more.' },
    ]);
  });

  test('adds older events in front, and keeps its newer messages and plan', () => {
    const older = [asked('dropped'), asked('first'), asked('second'), started('first'), part('m', 'Hel'), event('plan', { entries: [] })];
    const newer = [said('m', 'Hello.'), event('plan', { entries: [{ content: 'x', priority: 'low', status: 'pending' }] })];
    const transcript = transcriptOf(...newer);
    transcript.prepend(older);
    expect(textsOf(transcript)).toEqual(['Not delivered dropped', 'first', 'Hello.']);
    expect(waitingIn(transcript)).toEqual(['second']);
    expect(transcript.plan?.entries).toHaveLength(1);
    expect(transcript.hasTurn).toBe(true);
    const later = transcriptOf(started('a'));
    expect(later.hasTurn).toBe(false);
    later.prepend([asked('a')]);
    expect(later.hasTurn).toBe(true);
  });

  test('has the content of the call of an open request, also if the call is older than the events that were read first', () => {
    const content = [{ type: 'text' as const, text: 'the plan' }];
    const pending = event('tool_call', { tool_call_id: 'a', title: 'a', tool_kind: 'other', status: 'pending', paths: [], content });
    const request = { permission_id: 'p', tool_call_id: 'a', title: 'Approve', options: [] };
    const transcript = transcriptOf(event('permission_requested', request));
    expect(transcript.contentFor(request)).toEqual([]);
    transcript.prepend([started('1'), pending]);
    expect(transcript.contentFor(request)).toEqual(content);
    transcript.apply(started('2'));
    expect(transcript.contentFor(request)).toEqual([]);
  });

  test('shows a call of a long turn once after older events are added, and updates it', () => {
    const transcript = transcriptOf(call('a', 'completed'));
    transcript.prepend([call('a', 'in_progress'), call('b', 'in_progress')]);
    transcript.prepend([started('0'), call('a', 'completed'), started('1'), call('a', 'in_progress'), call('c', 'in_progress')]);
    transcript.apply(call('b', 'completed'));
    transcript.apply(call('c', 'completed'));
    expect(transcript.arranged().rows.map((entry) => entry.kind === 'tool' && [entry.call.tool_call_id, entry.call.status])).toEqual([
      ['a', 'completed'], ['c', 'completed'], ['b', 'completed'], ['a', 'completed'],
    ]);
  });

  test('has the user of each message', () => {
    const users = ['ann', 'root'].map((user_id) => ({ ...asked(user_id), actor: 'user' as const, user_id }));
    const { rows, waiting } = transcriptOf(...users, said('b', 'x')).arranged();
    expect([...waiting, ...rows].map((entry) => entry.kind === 'message' && entry.userId)).toEqual(['ann', 'root', null]);
  });
});
