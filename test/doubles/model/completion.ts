import { randomUUID } from 'node:crypto';
import type { ModelReply } from './replies.ts';

type Spoken = Exclude<ModelReply, { status: number }>;

const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };

function head(object: string, model: string) {
  return { id: `chatcmpl-${randomUUID()}`, object, created: 0, model };
}

function toolCalls(reply: Spoken) {
  if (!('tool' in reply)) return [];
  return [{ index: 0, id: `call_${randomUUID()}`, type: 'function', function: { name: reply.tool, arguments: JSON.stringify(reply.arguments) } }];
}

function finish(reply: Spoken): string {
  return 'tool' in reply ? 'tool_calls' : 'stop';
}

/** Returns the answer as one JSON document. */
export function completion(reply: Spoken, model: string) {
  const calls = toolCalls(reply);
  const message = { role: 'assistant', content: reply.text ?? null, ...(calls.length > 0 ? { tool_calls: calls } : {}) };
  return { ...head('chat.completion', model), choices: [{ index: 0, message, finish_reason: finish(reply) }], usage };
}

/** Returns the answer as the data of server-sent events. A reply that stalls has no end. */
export function chunks(reply: Spoken, model: string): string[] {
  const same = head('chat.completion.chunk', model);
  const chunk = (delta: object, reason: string | null = null): string => JSON.stringify({ ...same, choices: [{ index: 0, delta, finish_reason: reason }] });
  const said = [chunk({ role: 'assistant', content: '' })];
  if ('thought' in reply) said.push(chunk({ reasoning_content: reply.thought }));
  for (const piece of (reply.text ?? '').match(/.{1,20}/gsu) ?? []) said.push(chunk({ content: piece }));
  for (const call of toolCalls(reply)) said.push(chunk({ tool_calls: [call] }));
  if ('stall' in reply && reply.stall) return said;
  return [...said, chunk({}, finish(reply)), JSON.stringify({ ...same, choices: [], usage }), '[DONE]'];
}
