import type { api, Sandbox } from '../../client/index.ts';
import { Files } from '../sandbox/files.tsx';
import { Logs } from '../sandbox/logs.tsx';
import { Overview } from '../sandbox/overview.tsx';
import { Ports } from '../sandbox/ports.tsx';
import { TerminalTab } from '../sandbox/terminal-tab.tsx';
import { sandboxStatusName } from '../format.ts';
import { useResource } from '../live-resources.ts';
import { navigate, route } from '../route.ts';
import { canChange, currentSession } from '../session.ts';
import { useSpecs } from '../specs.ts';
import { ActionButton, CopyButton, toast } from '../ui/actions.tsx';
import { Button, Status, Tabs } from '../ui/controls.tsx';
import { ask } from '../ui/dialog.tsx';
import { Loaded, LoadedPage, Page } from '../ui/page.tsx';

export function SandboxPage({ id }: { readonly id: string }) {
  const { client } = currentSession();
  const resource = useResource((signal) => client.sandboxes.get(id, { signal }), [id], (event) => event.sandbox_id === id);
  return (
    <LoadedPage resource={resource} title={id} isId back={['Sandboxes', ['sandboxes']]}>
      {(sandbox) => <LoadedSandbox sandbox={sandbox} onState={resource.reload} />}
    </LoadedPage>
  );
}

interface LoadedSandboxProps {
  readonly sandbox: Sandbox;
  readonly onState: () => void;
}

function LoadedSandbox({ sandbox, onState }: LoadedSandboxProps) {
  const { state } = sandbox;
  const specs = useSpecs();
  const spec = specs.data?.find(({ id }) => id === state.sandbox_spec_id);
  const isSpecGone = specs.data !== null && spec === undefined;
  const tab = route.value.query.get('tab') ?? 'overview';
  return (
    <Page title={state.id} isId back={['Sandboxes', ['sandboxes']]}
      meta={<><CopyButton text={state.id} /><Status value={state.status} label={sandboxStatusName(state.status, state.pause_kind)} /></>}
      actions={<Actions sandbox={sandbox} onState={onState} />}>
      {state.status_detail !== null && <p class={state.status === 'ERROR' ? 'banner bad' : 'banner'}>{state.status_detail}</p>}
      <Tabs current={tab} tabs={[
        ['overview', 'Overview'], ['logs', 'Logs'], ['terminal', 'Terminal'],
        ['files', 'Files'], ['ports', 'Ports'],
      ]} />
      {tab === 'overview' && <Overview sandbox={sandbox} spec={spec} isSpecGone={isSpecGone} />}
      {tab === 'logs' && <Logs sandbox={sandbox} />}
      {tab === 'terminal' && <TerminalTab sandbox={sandbox} />}
      {tab === 'files' && <Loaded resource={specs}>{() => <Files sandbox={sandbox} home={spec?.working_dir ?? '/'} />}</Loaded>}
      {tab === 'ports' && <Loaded resource={specs}>{() => <Ports sandbox={sandbox} spec={spec} />}</Loaded>}
    </Page>
  );
}

const pausable: ReadonlySet<api.SandboxStatus> = new Set(['RUNNING', 'STARTING', 'RESUMING']);
const resumable: ReadonlySet<api.SandboxStatus> = new Set(['PAUSED', 'ERROR', 'MISSING']);

function Actions({ sandbox, onState }: LoadedSandboxProps) {
  const { id, status, pause_kind: kind } = sandbox.state;
  if (!canChange()) return null;
  const isFrozen = status === 'PAUSED' && kind === 'freeze';
  return (
    <>
      {resumable.has(status) && (
        <ActionButton icon="play" onAct={() => sandbox.resume().then(onState)}>Resume</ActionButton>
      )}
      {status === 'RUNNING' && <ActionButton icon="pause" onAct={() => sandbox.pause().then(onState)}>Pause</ActionButton>}
      {(pausable.has(status) || isFrozen) && <Button icon="stop" onClick={() => ask({
        title: 'Stop this sandbox?', submit: 'Stop',
        text: 'Its processes end, and what they hold in memory is lost. Its files stay.',
        onSubmit: () => sandbox.pause('stop').then(onState),
      })}>Stop</Button>}
      <Button kind="danger" icon="trash" onClick={() => ask({
        title: 'Delete this sandbox?', submit: 'Delete',
        text: 'Its processes end, and its files are lost. Conversations that use it can’t continue.',
        onSubmit: async () => {
          await sandbox.delete();
          toast(`${id} is deleted.`);
          return () => navigate(['sandboxes']);
        },
      })}>Delete</Button>
    </>
  );
}
