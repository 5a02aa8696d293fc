import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ToolCallContent } from '../../../src/domain/agent.ts';
import type { ToolCallChange } from '../../contracts/agent-script.ts';
import type { Session } from './sessions.ts';
import type { AcpStep } from './steps.ts';
import { ask, flushed, send, stopListening, write } from './wire.ts';

export interface Turn {
  readonly session: Session;
  /** Resolves when the turn is cancelled. */
  readonly cancelled: Promise<void>;
  readonly isCancelled: () => boolean;
}

type Answer = { readonly result: unknown } | { readonly error: unknown };

/** Runs the step. Returns the response to the turn if the step ends it. */
export async function perform(step: AcpStep, turn: Turn): Promise<Answer | null> {
  const { session } = turn;
  if ('say' in step) await say(session, step.say, step.channel, step.messageId);
  else if ('tool' in step) await reportToolCall(session, step.tool);
  else if ('plan' in step) await session.update({ sessionUpdate: 'plan', entries: step.plan });
  else if ('usage' in step) await session.update({ sessionUpdate: 'usage_update', used: step.usage.usedTokens, size: step.usage.contextTokens, cost: step.usage.cost });
  else if ('flood' in step) {
    const padding = 'bytes' in step ? 'x'.repeat(step.bytes) : '';
    for (let index = 0; index < step.flood; index += 1) await say(session, `${index}${padding}`);
  } else if ('ask' in step) {
    const { toolCallId, title, options } = step.ask;
    const { result } = await ask('session/request_permission', { sessionId: session.id, toolCall: { toolCallId, title }, options });
    const { outcome } = result as { readonly outcome: { readonly outcome: string; readonly optionId?: string } };
    await say(session, `chosen: ${outcome.optionId ?? 'nothing'}`);
    if (turn.isCancelled()) return stopped('cancelled');
  } else if ('stall' in step) {
    await say(session, 'stalling.');
    await (step.stall === 'heeds' ? turn.cancelled : new Promise<never>(() => {}));
    return stopped('cancelled');
  } else if ('objects' in step) {
    await say(session, 'stalling.');
    await turn.cancelled;
    return { error: { code: -32_603, message: 'AbortError: it was aborted' } };
  } else if ('fail' in step) return { error: { code: -32_603, message: 'Internal error', data: { details: step.fail } } };
  else if ('stop' in step) return stopped(step.stop);
  else if ('error' in step) return { error: step.error };
  else if ('answer' in step) return { result: step.answer };
  else if ('crash' in step) {
    await flushed();
    process.kill(process.pid, 'SIGKILL');
  } else await performOdd(step, session);
  return null;
}

type Odd = Extract<AcpStep, { raw: unknown } | { update: unknown } | { notify: unknown } | { request: unknown } | { stderr: unknown } | { write: unknown } | { read: unknown } | { run: unknown } | { env: unknown } | { after: unknown } | { deaf: unknown }>;

async function performOdd(step: Odd, session: Session): Promise<void> {
  if ('raw' in step) for (let times = step.times ?? 1; times > 0; times -= 1) await write(step.raw);
  else if ('update' in step) await session.update(step.update);
  else if ('notify' in step) await send(step.notify);
  else if ('request' in step) await say(session, `answered: ${JSON.stringify(await ask(step.request.method, step.request.params))}`);
  else if ('stderr' in step) process.stderr.write(step.stderr);
  else if ('read' in step) await say(session, readFileSync(join(session.cwd, step.read), 'utf8'));
  else if ('run' in step) execFileSync('/bin/sh', ['-c', step.run], { cwd: session.cwd });
  else if ('env' in step) await say(session, process.env[step.env] ?? 'unset');
  else if ('deaf' in step) stopListening();
  else if ('write' in step) {
    const { path, text } = step.write;
    const tool = { toolCallId: `write-${path}`, title: `Write ${path}`, toolKind: 'edit', paths: [join(session.cwd, path)] };
    await reportToolCall(session, { ...tool, status: 'in_progress' });
    writeFileSync(join(session.cwd, path), text);
    await reportToolCall(session, { ...tool, status: 'completed', content: [{ type: 'diff', path: join(session.cwd, path), oldText: null, newText: text }] });
  }
}

function stopped(stopReason: string): Answer {
  return { result: { stopReason } };
}

async function say(session: Session, text: string, channel = 'answer', messageId?: string): Promise<void> {
  const sessionUpdate = channel === 'answer' ? 'agent_message_chunk' : 'agent_thought_chunk';
  await session.update({ sessionUpdate, content: { type: 'text', text }, messageId });
}

const known = new Set<string>();

/** Reports a tool call: the first time as a call, then as updates. */
async function reportToolCall(session: Session, { toolKind, paths, content, ...tool }: ToolCallChange): Promise<void> {
  const sessionUpdate = known.has(tool.toolCallId) ? 'tool_call_update' : 'tool_call';
  known.add(tool.toolCallId);
  await session.update({ sessionUpdate, ...tool, kind: toolKind, locations: paths?.map((path) => ({ path })), content: content?.map(onTheWire) });
}

function onTheWire(content: ToolCallContent): object {
  return content.type === 'diff' ? content : { type: 'content', content };
}
