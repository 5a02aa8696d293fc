import type { api } from '../../client/index.ts';
import { readableName } from '../format.ts';
import { useResource } from '../live-resources.ts';
import { currentSession, logOut } from '../session.ts';
import { theme } from '../theme.ts';
import { Button, type Column, Facts, Field, Select, Table } from '../ui/controls.tsx';
import { Empty, Loaded, Page } from '../ui/page.tsx';
import { accessNames } from './keys.tsx';

export function SettingsPage() {
  const { me } = currentSession();
  return (
    <Page title="Settings">
      <section class="card">
        <h2>You</h2>
        <Facts facts={[
          ['Owner', me.user_id], ['Key', me.key_name], ['Access', accessNames[me.access]],
          ['Repositories', me.repositories?.join(', ') ?? 'All'],
        ]} />
        <Field label="Appearance">
          <Select value={theme.value} onChange={(value) => (theme.value = value)} options={[
            ['', 'As the system'], ['light', 'Light'], ['dark', 'Dark'],
          ]} />
        </Field>
        <p><Button icon="leave" onClick={() => logOut()}>Log out</Button></p>
      </section>
      {me.access === 'admin' ? <Server /> : (
        <Empty icon="settings" title="The settings of the server are for administrators">
          Log in with an administrator’s key to see them.
        </Empty>
      )}
    </Page>
  );
}

function Server() {
  const resource = useResource((signal) => currentSession().client.request('GET /api/v1/settings', { signal }), []);
  return (
    <>
      <p class="dim">Read-only. They come from the environment and the configuration file.</p>
      <Loaded resource={resource}>{({ items }) => <Table items={items} keyOf={({ key }) => key} columns={columns} />}</Loaded>
    </>
  );
}

const columns: readonly Column<api.Setting>[] = [
  ['Setting', 'main', ({ key, variable }) => (
    <><code>{key}</code>{variable !== null && <small class="dim id">{variable}</small>}</>
  )],
  ['Value', 'clip', ({ value, source, is_secret: isSecret, form }) => (
    <code title={form}>{value ?? (isSecret && source !== 'default' ? '(set)' : '–')}</code>
  )],
  ['From', 'wide', ({ source }) => (
    <span class={source === 'default' ? 'dim' : ''}>{readableName(source)}</span>
  )],
];
