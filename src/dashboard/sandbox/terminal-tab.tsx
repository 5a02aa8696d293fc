import { useEffect, useRef, useState } from 'preact/hooks';
import { loginShell } from '../../client/executions.ts';
import type { Attachment, Execution, Sandbox } from '../../client/index.ts';
import { canChange } from '../session.ts';
import { ActionButton, toastFailure } from '../ui/actions.tsx';
import { Empty } from '../ui/page.tsx';

/** A terminal in the sandbox. It keeps running when the user leaves the page, and the page finds it again. */
export function TerminalTab({ sandbox }: { readonly sandbox: Sandbox }) {
  const [execution, setExecution] = useState<Execution | null>(null);
  if (!canChange()) return <Empty icon="tool" title="Your key can only read, so it can’t open a terminal." />;
  if (sandbox.state.status !== 'RUNNING') return <Empty icon="tool" title="The sandbox does not run">Resume it to open a terminal.</Empty>;
  const open = async () => {
    for await (const { id, tty, status } of sandbox.executions.list()) {
      if (tty && status === 'running') return setExecution(await sandbox.executions.get(id));
    }
    setExecution(await sandbox.executions.start(loginShell, { tty: { cols: 80, rows: 24 } }));
  };
  if (execution === null) {
    return (
      <Empty icon="tool" title="Terminal">
        <p>Opens a shell, or the one that still runs from your last visit.</p>
        <ActionButton kind="primary" onAct={open}>Open a terminal</ActionButton>
      </Empty>
    );
  }
  return (
    <section class="terminal-frame">
      <Screen key={execution.id} execution={execution} onEnd={() => setExecution(null)} />
      <p class="bar">
        <span class="dim">It keeps running when you leave this page.</span>
        <ActionButton onAct={() => execution.delete().then(() => setExecution(null))}>End the terminal</ActionButton>
      </p>
    </section>
  );
}

function Screen({ execution, onEnd }: { readonly execution: Execution; readonly onEnd: () => void }) {
  const element = useRef<HTMLDivElement>(null);
  const [taken, setTaken] = useState<Attachment | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    const options = { signal: abort.signal, onOtherWriter: setTaken };
    // The terminal is most of the page's code, so it is loaded on demand.
    void import('./terminal.ts')
      .then(({ showTerminal }) => element.current && showTerminal(element.current, execution, options))
      .then(() => abort.signal.aborted || onEnd())
      .catch((error: unknown) => abort.signal.aborted || toastFailure(error));
    return () => abort.abort();
  }, []);
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
