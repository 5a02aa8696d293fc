import { useMemo } from 'preact/hooks';
import type { api, Conversation } from '../../client/index.ts';
import { clockTime, readableName } from '../format.ts';
import { canChange, currentSession } from '../session.ts';
import { ActionButton } from '../ui/actions.tsx';
import { Status } from '../ui/controls.tsx';
import { diffLines, DiffView } from '../ui/diff.tsx';
import { Icon } from '../ui/icons.tsx';
import { Markdown } from '../ui/markdown.tsx';
import type { Entry, Transcript } from './transcript.ts';

interface EntryProps {
  readonly entry: Entry;
  readonly transcript: Transcript;
  readonly conversation: Conversation;
  /** Keys of the unfolded rows. Kept here, because rows out of view are not rendered. */
  readonly unfolded: Set<string>;
}

export function EntryRow(props: EntryProps) {
  const { entry } = props;
  switch (entry.kind) {
    case 'message': return entry.channel === 'thought' ? <Thought {...props} entry={entry} /> : <MessageRow {...props} entry={entry} />;
    case 'tool': return <ToolCall {...props} entry={entry} />;
    case 'permission': return <Permission {...props} entry={entry} />;
    case 'note': return (
      <p class={entry.isBad ? 'note bad' : 'note'}>
        <time dateTime={entry.at}>{clockTime(entry.at)}</time>
        <span>{entry.text}{entry.reason !== null && <> {entry.reason}</>}</span>
      </p>
    );
  }
}

type Of<K extends Entry['kind']> = EntryProps & { readonly entry: Extract<Entry, { readonly kind: K }> };

function MessageRow({ entry: { role, userId, text, at, fate } }: Of<'message'>) {
  const user = userId === null || userId === currentSession().me.user_id ? 'You' : userId;
  return (
    <article class={`said ${role}`}>
      <header>
        <b>{role === 'user' ? user : 'Agent'}</b>
        <time dateTime={at}>{clockTime(at)}</time>
        {fate !== undefined && <span class="tag">{fate}</span>}
      </header>
      {role === 'user' ? <p class="plain">{text}</p> : <Markdown text={text} />}
    </article>
  );
}

function Foldable({ entry, unfolded, summary, children }: EntryProps & Record<'summary' | 'children', preact.ComponentChildren>) {
  return (
    <details class="fold" open={unfolded.has(entry.key)}
      onToggle={(event) => (event.currentTarget.open ? unfolded.add(entry.key) : unfolded.delete(entry.key))}>
      <summary><Icon name="chevron" />{summary}</summary>
      {children}
    </details>
  );
}

function Thought(props: Of<'message'>) {
  const { text, isWhole } = props.entry;
  const name = isWhole ? 'Thought' : 'Thinking';
  const firstLine = text.trimStart().split('\n', 1)[0];
  return (
    <Foldable {...props} summary={<><span class="dim">{name}</span><span class="dim clip">{firstLine}</span></>}>
      <div class="thought"><Markdown text={text} /></div>
    </Foldable>
  );
}

function ToolCall(props: Of<'tool'>) {
  const { title, tool_kind: kind, status, paths, content } = props.entry.call;
  const name = (
    <>
      <Icon name="tool" /><span class="clip" title={title}>{title}</span><small class="dim">{readableName(kind)}</small>
      {status === 'completed' ? <span class="dim" title={readableName(status)}><Icon name="check" /></span> : <Status value={status} />}
    </>
  );
  if (content.length === 0 && paths.length === 0) return <div class="tool flat">{name}</div>;
  return (
    <div class="tool">
      <Foldable {...props} summary={name}>
        {paths.length > 0 && <p class="paths">{paths.map((path) => <code key={path}>{path}</code>)}</p>}
        <Content parts={content} />
      </Foldable>
    </div>
  );
}

function Content({ parts }: { readonly parts: api.ToolCallEventData['content'] }) {
  return parts.map((part, index) => part.type === 'diff'
    ? <Diff key={index} {...part} />
    : <pre key={index} tabIndex={0}>{part.text}</pre>);
}

type DiffPart = Extract<api.ToolCallEventData['content'][number], { readonly type: 'diff' }>;

/** Compared only once, because every part of an answer draws all rows again. */
function Diff({ path, old_text: before, new_text: after }: DiffPart) {
  return useMemo(() => <DiffView title={path} lines={diffLines(before ?? '', after)} />, [path, before, after]);
}

/** An open request shows the content of its call, because it is what the user allows. Later, the row of the call has it. */
function Permission({ entry: { request }, transcript, conversation }: Of<'permission'>) {
  const answer = transcript.answers.get(request.permission_id);
  const chosen = request.options.find(({ option_id: id }) => id === answer);
  return (
    <section class={answer === undefined ? 'permission open' : 'permission'} aria-label="The agent asks for permission">
      <p><Icon name="help" /><b>The agent asks for permission</b></p>
      <p class="plain">{request.title}</p>
      {answer !== undefined && <p class="dim">{chosen === undefined ? 'The request was withdrawn.' : `Answered: ${chosen.name}`}</p>}
      {answer === undefined && <Content parts={transcript.contentFor(request)} />}
      {answer === undefined && (
        <div class="actions">
          {request.options.map((option) => (
            <ActionButton key={option.option_id} kind={option.kind.startsWith('allow') ? 'primary' : 'plain'} disabled={!canChange()}
              onAct={() => conversation.answer(request.permission_id, option.option_id)}>{option.name}</ActionButton>
          ))}
        </div>
      )}
    </section>
  );
}
