import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { useResource } from '../live.ts';
import { currentSession, logOut } from '../session.ts';
import { texts } from '../texts.ts';
import { theme } from '../theme.ts';
import { Button, type Column, Facts, Field, Search, Select, Table } from '../ui/controls.tsx';
import { Empty, Loaded } from '../ui/feedback.tsx';
import { Page } from '../ui/page.tsx';

export function SettingsPage() {
  const { me } = currentSession();
  return (
    <Page title={texts.nav.settings}>
      <section class="card">
        <h2>{texts.settings.you}</h2>
        <Facts facts={[
          [texts.keys.owner, me.user_id], [texts.settings.key, me.key_name], [texts.keys.access, texts.keys.accesses[me.access]],
          [texts.keys.repositories, me.repositories?.join(', ') ?? texts.keys.allRepositories],
        ]} />
        <Field label={texts.settings.theme}>
          <Select label={texts.settings.theme} value={theme.value} onChange={(value) => (theme.value = value)} options={[
            ['', texts.settings.themes.system], ['light', texts.settings.themes.light], ['dark', texts.settings.themes.dark],
          ]} />
        </Field>
        <p><Button icon="leave" onClick={() => logOut()}>{texts.logOut}</Button></p>
      </section>
      {me.access === 'admin' ? <Server /> : <Empty icon="settings" title={texts.settings.noAdmin}>{texts.settings.noAdminHint}</Empty>}
    </Page>
  );
}

function Server() {
  const resource = useResource((signal) => currentSession().client.request('GET /api/v1/settings', { signal }), []);
  const [search, setSearch] = useState('');
  const isWanted = ({ key, variable }: api.Setting) => `${key} ${variable}`.toLowerCase().includes(search.toLowerCase());
  return (
    <>
      <div class="filters">
        <Search label={texts.settings.search} value={search} onInput={setSearch} /><p class="dim">{texts.settings.hint}</p>
      </div>
      <Loaded resource={resource}>
        {({ items }) => !items.some(isWanted) ? <Empty icon="settings" title={texts.settings.none}>{texts.settings.noneHint}</Empty> : (
          <Table items={items.filter(isWanted)} keyOf={({ key }) => key} columns={columns} />
        )}
      </Loaded>
    </>
  );
}

const columns: readonly Column<api.Setting>[] = [
  [texts.settings.setting, 'main', ({ key, variable }) => (
    <><code>{key}</code>{variable !== null && <small class="dim id">{variable}</small>}</>
  )],
  [texts.settings.value, 'clip', ({ value, source, is_secret: isSecret, form }) => (
    <code title={form}>{value ?? (isSecret && source !== 'default' ? texts.settings.secret : '–')}</code>
  )],
  [texts.settings.source, 'wide', ({ source }) => (
    <span class={source === 'default' ? 'dim' : ''}>{texts.settings.sources[source]}</span>
  )],
];
