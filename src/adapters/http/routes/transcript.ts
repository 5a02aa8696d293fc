import { z } from 'zod';
import type { TranscriptEntry } from '../../../application/conversations/conversations.ts';
import { toolCallStatuses, turnStopReasons } from '../../../domain/agent.ts';
import type { Conversation } from '../../../domain/conversation.ts';
import type { Reason } from '../../../domain/reason.ts';
import { sentenceOf } from '../../shared/failure-sentences.ts';
import { eventActor, presentStatus, statusFields, timestamp, toTimestamp } from '../common-schemas.ts';
import { operation, StreamedBody } from '../operation.ts';

type PermissionAnswer = NonNullable<Extract<TranscriptEntry, { readonly kind: 'permission' }>['answer']>;

const entry = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('message'),
      at: timestamp.describe("When it was complete. Of a user's message: when the agent got it, or was sent if the agent never got it."),
      role: z.enum(['user', 'agent']),
      user_id: z.string().nullable().describe('The user who sent it. Null for a message of the agent, or if it is not known.'),
      text: z.string(),
      delivered: z.boolean().describe("False for a user's message that the agent has not got: it waits, or was dropped."),
    }).meta({ id: 'TranscriptMessage' }),
    z.object({
      kind: z.literal('permission'),
      at: timestamp.describe('When it was answered or withdrawn. Of an open request: when the agent asked.'),
      title: z.string().describe('What the agent asked for.'),
      decision: z.enum(['allowed', 'refused', 'withdrawn', 'open']).describe('`open`: the agent waits for the answer.'),
      option_name: z.string().nullable().describe('The option that was chosen; null if the request is open or was withdrawn.'),
      actor: eventActor.nullable().describe('Who decided; `skep` for a policy or a time limit. Null if the request is open.'),
      user_id: z.string().nullable().describe('The user who decided. Null if it was no user, or is not known.'),
      ...statusFields,
    }).meta({ id: 'TranscriptPermission' }),
    z.object({
      kind: z.literal('tool_call'), at: timestamp, title: z.string(), tool_kind: z.string(), status: z.enum(toolCallStatuses),
      paths: z.array(z.string()),
      failure: z.string().nullable().describe('What a call that failed reported. Null if it reported no text, and for other calls.'),
    }).meta({ id: 'TranscriptToolCall' }),
    z.object({ kind: z.literal('turn_ended'), at: timestamp, stop_reason: z.enum(turnStopReasons), ...statusFields })
      .meta({ id: 'TranscriptTurnEnd' }),
  ])
  .meta({ id: 'TranscriptEntry', description: 'A message, a tool call, a request for permission, or a turn that did not end normally.' });

const transcript = z.object({ items: z.array(entry) }).meta({ id: 'Transcript' });

function presentEntry(shown: TranscriptEntry): z.output<typeof entry> {
  const at = toTimestamp(shown.at);
  switch (shown.kind) {
    case 'message':
      return { kind: 'message', at, role: shown.role, user_id: shown.userId, text: shown.text, delivered: shown.isDelivered };
    case 'permission': {
      const { title, answer } = shown;
      const by = { actor: answer?.actor ?? null, user_id: answer?.userId ?? null };
      const decided = { decision: decisionOf(answer), option_name: answer?.option?.name ?? null, ...by };
      return { kind: 'permission', at, title, ...decided, ...presentStatus(answer?.reason ?? null) };
    }
    case 'tool_call': {
      const { title, toolKind, status, paths, failure } = shown;
      return { kind: 'tool_call', at, title, tool_kind: toolKind, status, paths: [...paths], failure };
    }
    case 'turn_ended':
      return { kind: 'turn_ended', at, stop_reason: shown.stopReason, ...presentStatus(shown.reason) };
  }
}

function decisionOf(answer: PermissionAnswer | null): 'allowed' | 'refused' | 'withdrawn' | 'open' {
  if (answer === null) return 'open';
  const { option } = answer;
  if (option === null) return 'withdrawn';
  return option.kind.startsWith('allow') ? 'allowed' : 'refused';
}

async function* asJson(entries: AsyncIterable<TranscriptEntry>): AsyncGenerator<string, void> {
  let separator = '{"items":[';
  for await (const shown of entries) {
    yield separator + JSON.stringify(presentEntry(shown));
    separator = ',';
  }
  yield separator === ',' ? ']}' : '{"items":[]}';
}

/**
 * Yields the transcript as Markdown: each message under a heading with its author, and the agent's actions as a list. Users other than the
 * owner are named.
 */
async function* asMarkdown(
  { title, ownerId }: Pick<Conversation, 'title' | 'ownerId'>, entries: AsyncIterable<TranscriptEntry>,
): AsyncGenerator<string, void> {
  const nameOf = (userId: string | null): string => (userId === null || userId === ownerId ? '' : ` ${codeSpan(userId)}`);
  yield `# ${onOneLine(title ?? 'Conversation')}\n`;
  for await (const shown of entries) {
    if (shown.kind === 'message') {
      const author = shown.role === 'user' ? `User${nameOf(shown.userId)}` : 'Agent';
      yield `\n## ${author}, ${toTimestamp(shown.at)}${shown.isDelivered ? '' : ' (not delivered)'}\n\n${blockQuote(shown.text)}\n`;
    } else if (shown.kind === 'tool_call') {
      const { name, below } = named(shown.title);
      const paths = shown.paths.length === 0 ? '' : ` (${shown.paths.map(codeSpan).join(', ')})`;
      const failure = shown.failure === null ? '' : `\n\n  It reported:${codeBlock(shortened(shown.failure))}`;
      yield `\n- ${name}${paths}: ${shown.status}${below}${failure}\n`;
    } else if (shown.kind === 'permission') {
      const { name, below } = named(shown.title);
      yield `\n- Permission for ${name}: ${answerText(shown.answer, nameOf(shown.answer?.userId ?? null))}${below}\n`;
    } else {
      yield `\n*The turn ended: ${shown.stopReason}.${detailOf(shown.reason)}*\n`;
    }
  }
}

function answerText(answer: PermissionAnswer | null, userName: string): string {
  if (answer === null) return 'waits for an answer.';
  const { option, actor, reason } = answer;
  const by = option === null ? '' : `${actor === 'user' ? ` by the user${userName}` : ''} (${codeSpan(option.name)})`;
  return `${decisionOf(answer)}${by}.${detailOf(reason)}`;
}

function detailOf(reason: Reason | null): string {
  return reason === null ? '' : ` ${onOneLine(sentenceOf(reason))}`;
}

const lineEnd = /\r\n?|\n/u;

/** Returns the text as a quotation, so it can't imitate a heading of the transcript. */
function blockQuote(text: string): string {
  return text.split(lineEnd).map((line) => `> ${line}`.trimEnd()).join('\n');
}

/** Returns the title for a sentence. A title of several lines, for example a script, is put below the sentence. */
function named(title: string): { readonly name: string; readonly below: string } {
  const text = title.trim();
  return lineEnd.test(text) ? { name: 'the text below', below: codeBlock(text) } : { name: codeSpan(text), below: '' };
}

/** Returns the text as a code span of Markdown, in which nothing has a meaning except a run of as many backticks as begin it. */
function codeSpan(text: string): string {
  const line = text.split(lineEnd).join(' ');
  const fence = '`'.repeat(longestRun(line) + 1);
  // Markdown takes away a space at both ends.
  const edge = /^`|`$|^ .* $/u.test(line) ? ' ' : '';
  return fence + edge + line + edge + fence;
}

/** Returns the text as a code block in an item of a list. */
function codeBlock(text: string): string {
  const fence = '`'.repeat(Math.max(3, longestRun(text) + 1));
  return `\n\n  ${[fence, ...text.split(lineEnd), fence].join('\n  ')}`;
}

const maxShownEnd = 1000;

/** Returns the beginning and the end of a long text: a failure is described at the one by some tools, at the other by most commands. */
function shortened(text: string): string {
  const left = text.length - 2 * maxShownEnd;
  if (left <= 0) return text;
  const note = `[... ${left} characters are left out; the transcript as JSON has them ...]`;
  return [text.slice(0, maxShownEnd).toWellFormed(), note, text.slice(-maxShownEnd).toWellFormed()].join('\n');
}

/** Returns the length of the longest run of backticks in the text. */
function longestRun(text: string): number {
  return (text.match(/`+/gu) ?? []).reduce((longest, run) => Math.max(longest, run.length), 0);
}

function onOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

export const transcriptOperation = operation('get', '/api/v1/app-conversations/{id}/transcript', {
  tag: 'Conversations',
  operationId: 'get_app_conversation_transcript',
  summary: 'Read what was said and done in a conversation',
  description: 'As far as events are kept; also of an archived conversation. Thoughts, plans and diffs are only in the events.',
  query: z.object({ format: z.enum(['markdown', 'json']).default('markdown') }),
  success: { status: 200, description: 'The transcript.', schema: z.string(), media: 'text/markdown; charset=utf-8' },
  otherwise: [{ status: 200, description: 'The transcript.', schema: transcript }],
  failures: ['conversation_not_found'],
  handle: async (context, { params, query }): Promise<StreamedBody> => {
    const { skep, principal } = context;
    const ends = context.openTransfer();
    const { conversation } = await skep.conversations.get(principal, params.id);
    const entries = await skep.conversations.transcript(principal, params.id);
    if (query.format === 'markdown') return new StreamedBody(asMarkdown(conversation, entries), ends);
    return new StreamedBody(asJson(entries), ends, 'application/json; charset=utf-8');
  },
});
