import { effect, signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { loginShell } from '../../client/executions.ts';
import type { api, Attachment, Execution, Sandbox } from '../../client/index.ts';
import { asError, useResource } from '../live-resources.ts';
import { navigate, type Query, route, setQuery } from '../route.ts';
import { canChange } from '../session.ts';
import { ActionButton } from '../ui/actions.tsx';
import { Button, Checkbox, Link, Table, Time } from '../ui/controls.tsx';
import { ask } from '../ui/dialog.tsx';
import { Empty, Failed, Loaded } from '../ui/page.tsx';

const storedMode = 'skep.screen-reader';
/** Such terminals ignore text that comes without keys, for example of dictation or an emoji picker, so others are the default. */
const isForScreenReader = signal(localStorage.getItem(storedMode) === 'true');
effect(() => localStorage.setItem(storedMode, String(isForScreenReader.value)));

/** The terminals of the sandbox. The address has the one that is shown, so a reload shows it again. */
export function TerminalTab({ sandbox }: { readonly sandbox: Sandbox }) {
  if (!canChange()) return <Empty icon="tool" title="Your key can only read, so it can’t open a terminal." />;
  if (sandbox.state.status !== 'RUNNING') return <Empty icon="tool" title="The sandbox does not run">Resume it to open a terminal.</Empty>;
  const id = route.value.query.get('terminal');
  return id === null ? <Terminals sandbox={sandbox} /> : <OpenTerminal key={id} sandbox={sandbox} id={id} />;
}

/** The terminals that run, also those that other programs and users have opened. */
function Terminals({ sandbox }: { readonly sandbox: Sandbox }) {
  const { id, executions } = sandbox;
  const resource = useResource(async (signal) => {
    const found: api.Execution[] = [];
    for await (const execution of executions.list({ signal })) if (execution.tty && execution.status === 'running') found.push(execution);
    return found;
  }, [id]);
  const bar = useRef<HTMLParagraphElement>(null);
  const open = async () => {
    const { terminalSizeAt } = await loadTerminal();
    if (bar.current === null) return;
    const shell = await executions.start(loginShell, { tty: terminalSizeAt(bar.current) });
    newTerminals.add(shell.id);
    navigate(['sandboxes', id], queryOf(shell.id));
  };
  return (
    <>
      <p class="bar" ref={bar}>
        <Checkbox label="For a screen reader" checked={isForScreenReader.value} onChange={(isOn) => (isForScreenReader.value = isOn)} />
        <ActionButton kind="primary" onAct={open}>Open a terminal</ActionButton>
      </p>
      <Loaded resource={resource}>
        {(running) => running.length === 0
          ? <Empty icon="tool" title="No terminal is open">Terminals keep running when you leave the page.</Empty>
          : <Table items={running} keyOf={(execution) => execution.id} columns={[
            ['Command', 'main', (execution) => (
              <Link class="row-link id" to={['sandboxes', id]} query={queryOf(execution.id)}>{nameOf(execution)}</Link>
            )],
            ['Started', 'right dim', ({ started_at: at }) => <Time at={at} />],
          ]} />}
      </Loaded>
    </>
  );
}

/** The terminal is most of the page's code, so it is loaded on demand. */
const loadTerminal = () => import('./terminal.ts').catch((cause: unknown) => {
  throw new Error('The terminal could not be loaded. If the server was updated, reload the page.', { cause });
});

/** The ids of the terminals that this page has started and not shown yet. */
const newTerminals = new Set<string>();

function queryOf(terminal: string): Query {
  return { tab: 'terminal', terminal };
}

function leave(): void {
  setQuery({ terminal: null });
}

function nameOf({ command }: api.Execution): string {
  return command.join(' ') === loginShell.join(' ') ? 'Shell' : command.join(' ');
}

function OpenTerminal({ sandbox: { executions }, id }: { readonly sandbox: Sandbox; readonly id: string }) {
  const resource = useResource((signal) => executions.get(id, { signal }), [id]);
  return (
    <Loaded resource={resource}>
      {(execution) => (
        <section class="terminal-frame">
          <Screen execution={execution} onEnd={leave} />
          <p class="bar">
            <code class="clip">{nameOf(execution.state)}</code>
            <Button onClick={() => ask({
              title: 'End this terminal?', submit: 'End',
              text: 'Its command and everything that it has started end.',
              onSubmit: () => execution.delete().then(() => leave),
            })}>End the terminal</Button>
          </p>
        </section>
      )}
    </Loaded>
  );
}

function Screen({ execution, onEnd }: { readonly execution: Execution; readonly onEnd: () => void }) {
  const element = useRef<HTMLDivElement>(null);
  const [taken, setTaken] = useState<Attachment | null>(null);
  const [failure, setFailure] = useState<Error | null>(null);
  const fail = (error: unknown) => setFailure(asError(error));
  useEffect(() => {
    if (failure !== null) return;
    const abort = new AbortController();
    const isNew = newTerminals.delete(execution.id);
    const options = { signal: abort.signal, isForScreenReader: isForScreenReader.value, isNew, onOtherWriter: setTaken };
    void loadTerminal()
      .then(({ showTerminal }) => element.current && showTerminal(element.current, execution, options))
      .then(() => abort.signal.aborted || onEnd())
      .catch((error: unknown) => abort.signal.aborted || fail(error));
    return () => abort.abort();
  }, [failure === null]);
  if (failure !== null) return <Failed error={failure} onRetry={() => void execution.refresh().then(() => setFailure(null), fail)} />;
  return (
    <>
      {taken !== null && <div class="banner bar" role="status">
        <span>Another window writes in this terminal. This one only shows it.</span>
        <ActionButton onAct={() => taken.takeOver()}>Write here</ActionButton>
      </div>}
      <div class="terminal-screen" ref={element} />
    </>
  );
}
