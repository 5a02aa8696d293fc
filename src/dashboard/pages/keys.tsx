import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { useResource } from '../live.ts';
import { canChange, currentSession } from '../session.ts';
import { texts } from '../texts.ts';
import { Button, CopyButton, Field, Input, Select, Status, Table, Time } from '../ui/controls.tsx';
import { ask, Dialog, FormDialog } from '../ui/dialog.tsx';
import { Empty, Loaded } from '../ui/feedback.tsx';
import { Page } from '../ui/page.tsx';

export function KeysPage() {
  const { client, me } = currentSession();
  const [isAdding, setAdding] = useState(false);
  const [made, setMade] = useState<api.NewKey | null>(null);
  const resource = useResource(async (signal) => (me.has_keys ? (await client.request('GET /api/v1/keys', { signal })).items : []), []);
  const add = canChange() && me.has_keys && <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>{texts.keys.add}</Button>;
  return (
    <Page title={texts.nav.keys} actions={add}>
      {!me.has_keys ? <Empty icon="keys" title={texts.keys.unsupported}>{texts.keys.unsupportedHint}</Empty> : (
        <Loaded resource={resource}>{(keys) => <List keys={keys} onChange={resource.reload} />}</Loaded>
      )}
      {isAdding && <NewKey onClose={() => setAdding(false)} onMade={(key) => {
        setMade(key);
        resource.reload();
      }} />}
      {made !== null && (
        <Dialog title={texts.keys.made} onClose={() => setMade(null)}>
          <h2>{texts.keys.made}</h2>
          <p>{texts.keys.madeHint}</p>
          <p class="secret"><code>{made.key}</code><CopyButton text={made.key} /></p>
          <footer><Button kind="primary" onClick={() => setMade(null)}>{texts.done}</Button></footer>
        </Dialog>
      )}
    </Page>
  );
}

function List({ keys, onChange }: { readonly keys: readonly api.Key[]; readonly onChange: () => void }) {
  const revoke = ({ id, name, is_own: isOwn }: api.Key) => ask({
    title: texts.keys.revokeTitle(name), text: isOwn ? texts.keys.revokeOwn : texts.keys.revokeText, submit: texts.keys.revoke,
    onSubmit: () => currentSession().client.request('DELETE /api/v1/keys/{key}', { path: { key: id } }).then(onChange),
  });
  return (
    <Table items={keys} keyOf={({ id }) => id} rowClass={({ state }) => (state === 'valid' ? '' : 'off')} columns={[
      [texts.keys.name, 'main', ({ name, is_own: isOwn }) => <>{name}{isOwn && <span class="tag">{texts.keys.own}</span>}</>],
      [texts.status, '', ({ state }) => <Status value={state} />],
      [texts.keys.access, 'wide', ({ access }) => texts.keys.accesses[access]],
      [texts.keys.owner, 'wide', ({ user_id: user }) => user],
      [texts.keys.repositories, 'wide dim', ({ repositories }) => repositories?.join(', ') ?? texts.keys.allRepositories],
      [texts.keys.expires, 'wide dim', ({ expires_at: at }) => (at === null ? texts.keys.never : <Time at={at} />)],
      ['', 'right', (key) => key.state === 'valid' && canChange() && <Button onClick={() => revoke(key)}>{texts.keys.revoke}</Button>],
    ]} />
  );
}

const keyLifetimes = [['', 0], ['day', 86_400], ['month', 2_592_000], ['year', 31_536_000]] as const;
const accesses = ['full', 'read', 'admin'] as const;

function NewKey({ onClose, onMade }: { readonly onClose: () => void; readonly onMade: (key: api.NewKey) => void }) {
  const { client, me } = currentSession();
  const [name, setName] = useState('');
  const [user, setUser] = useState('');
  const [access, setAccess] = useState('full');
  const [life, setLife] = useState('');
  const [repositories, setRepositories] = useState('');
  const patterns = repositories.split(/[\s,]+/).filter(Boolean);
  const isAdmin = me.access === 'admin';
  return (
    <FormDialog title={texts.keys.add} submit={texts.keys.create} isReady={name !== ''} onClose={onClose} onSubmit={async () => {
      const seconds = keyLifetimes.find(([id]) => id === life)?.[1] ?? 0;
      onMade(await client.request('POST /api/v1/keys', {
        body: {
          name, access: accesses.find((one) => one === access), ...(user !== '' && { user_id: user }),
          ...(seconds > 0 && { expires_in_seconds: seconds }), ...(patterns.length > 0 && { repositories: patterns }),
        },
      }));
    }}>
      <Field label={texts.keys.name} hint={texts.keys.nameHint}><Input required value={name} onInput={setName} /></Field>
      {isAdmin && (
        <Field label={texts.keys.owner} hint={patterns.length > 0 ? texts.keys.otherOwnerHint : texts.keys.ownerHint(me.user_id)}>
          <Input required={patterns.length > 0} value={user} onInput={setUser} />
        </Field>
      )}
      <div class="pair">
        <Field label={texts.keys.access}>
          <Select label={texts.keys.access} value={access} onChange={setAccess}
            options={accesses.filter((one) => isAdmin || one !== 'admin').map((one) => [one, texts.keys.accesses[one]])} />
        </Field>
        <Field label={texts.keys.expires}>
          <Select label={texts.keys.expires} value={life} onChange={setLife}
            options={keyLifetimes.map(([id]) => [id, texts.keys.lives[id]])} />
        </Field>
      </div>
      <Field label={texts.keys.repositories} hint={texts.keys.repositoriesHint}>
        <Input value={repositories} placeholder="acme/*" onInput={setRepositories} />
      </Field>
    </FormDialog>
  );
}
