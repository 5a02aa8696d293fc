import stripAnsi from 'strip-ansi';
import { useEffect, useRef, useState } from 'preact/hooks';
import { isFailure, type Sandbox } from '../../client/index.ts';
import { whileVisible } from '../live.ts';
import { currentSession } from '../session.ts';
import { texts } from '../texts.ts';
import { ActionButton } from '../ui/controls.tsx';
import { Failed } from '../ui/feedback.tsx';
import { saveFile } from '../ui/save-file.ts';

const tailBytes = 256 << 10;
const maxShown = 1 << 20;
const route = 'GET /api/v1/sandboxes/{id}/logs';

/** The output of the sandbox's own command. */
export function Logs({ sandbox: { id, state } }: { readonly sandbox: Sandbox }) {
  const [text, setText] = useState<string | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const screen = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => whileVisible(async (signal) => {
    const follow = state.status === 'RUNNING' ? 'true' : 'false';
    const input = { path: { id }, query: { tail_bytes: tailBytes, follow }, signal, silenceMs: Infinity } as const;
    const response = await currentSession().client.stream(route, input);
    let shown = '';
    setText(shown);
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
      shown = (shown + part.value).slice(-maxShown);
      setText(stripAnsi(shown).replaceAll('\r\n', '\n'));
    }
  }, (failure) => !isFailure(failure, 'connection_lost') && setError(failure)), [id, state.status]);
  useEffect(() => {
    if (isAtEnd.current && screen.current !== null) screen.current.scrollTop = screen.current.scrollHeight;
  }, [text]);
  if (error !== null) return <Failed error={error} />;
  return (
    <section class="logs">
      <header class="bar">
        <p class="dim">{state.status === 'RUNNING' ? texts.logs.following : texts.logs.resting}</p>
        <ActionButton icon="download" onAct={async () => {
          const response = await currentSession().client.stream(route, { path: { id } });
          saveFile(`${id}.log`, await response.blob());
        }}>{texts.download}</ActionButton>
      </header>
      <pre ref={screen} tabIndex={0} class="screen" onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        isAtEnd.current = scrollTop + clientHeight > scrollHeight - 40;
      }}>{text === '' ? <span class="dim">{texts.logs.none}</span> : text}</pre>
    </section>
  );
}
