import stripAnsi from 'strip-ansi';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { partsOf } from '../../client/byte-stream.ts';
import { connectionLost } from '../../client/failures.ts';
import type { Sandbox } from '../../client/index.ts';
import { whileVisible } from '../live-resources.ts';
import { currentSession } from '../session.ts';
import { DownloadButton } from '../ui/actions.tsx';
import { Failed, NotUpToDate } from '../ui/page.tsx';

const tailBytes = 256 << 10;
const maxShown = 1 << 20;
const route = 'GET /api/v1/sandboxes/{id}/logs';

/** The output of the sandbox's own command. */
export function Logs({ sandbox: { id, state } }: { readonly sandbox: Sandbox }) {
  const [text, setText] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const screen = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  const isRunning = state.status === 'RUNNING';
  useEffect(() => whileVisible(async (signal, isLive) => {
    const isFollowing = isRunning && isLive;
    const input = { path: { id }, query: { tail_bytes: tailBytes, follow: isFollowing }, signal, silenceMs: Infinity };
    const response = await currentSession().client.stream(route, input);
    setText((shown) => shown ?? '');
    setError(null);
    await showParts(isFollowing ? partsOf(response.body) : [new Uint8Array(await response.arrayBuffer())], setText);
    // The log of a running sandbox ends only with the connection or the server.
    if (isFollowing) throw connectionLost();
  }, setError), [id, isRunning]);
  // In the task that changes the text. A scroll event between the two would look like a user who scrolls up.
  useLayoutEffect(() => {
    if (isAtEnd.current && screen.current !== null) screen.current.scrollTop = screen.current.scrollHeight;
  }, [text]);
  if (error !== null && text === null) return <Failed error={error} />;
  return (
    <section class="logs">
      <header class="bar">
        <p class="dim">{isRunning ? 'The end of its command’s output, live' : 'The end of its command’s output'}</p>
        <DownloadButton name={`${id}.log`} read={() => currentSession().client.stream(route, { path: { id } })}>
          Download all
        </DownloadButton>
      </header>
      <NotUpToDate error={error} />
      <pre ref={screen} tabIndex={0} class="screen" onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        isAtEnd.current = scrollTop + clientHeight > scrollHeight - 40;
      }}>{text === '' ? <span class="dim">Nothing was written yet.</span> : text}</pre>
    </section>
  );
}

/** Shows the log as it arrives. A control sequence can be in two parts, so only complete lines are kept as plain text. */
async function showParts(parts: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, show: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let lines = '';
  let lastLine = '';
  for await (const part of parts) {
    const text = lastLine + decoder.decode(part, { stream: true });
    const end = text.lastIndexOf('\n') + 1;
    lines += plain(text.slice(0, end));
    const wasWhole = bytes < tailBytes;
    bytes += part.length;
    if (wasWhole && bytes >= tailBytes) lines = fromNextLine(lines, 0);
    if (lines.length > maxShown) lines = fromNextLine(lines, lines.length - maxShown);
    lastLine = text.slice(end).slice(-maxShown);
    show(lines + plain(lastLine));
  }
}

/** A log that is cut off begins in the middle of a line. */
function fromNextLine(text: string, at: number): string {
  return text.slice(text.indexOf('\n', at) + 1);
}

function plain(text: string): string {
  return stripAnsi(text).replaceAll('\r\n', '\n');
}
