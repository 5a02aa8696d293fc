import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { useResource } from '../live-resources.ts';
import { canChange, currentSession } from '../session.ts';
import { CopyButton } from '../ui/actions.tsx';
import { Button, Field, Select, Status, Table, Time } from '../ui/controls.tsx';
import { ask, Dialog, type FormTexts, FormDialog } from '../ui/dialog.tsx';
import { Empty, Loaded, Page } from '../ui/page.tsx';

export const accessNames = { full: 'Read and change', read: 'Read only', admin: 'Administrator' } as const;

export function KeysPage() {
  const { client, me } = currentSession();
  const [isAdding, setAdding] = useState(false);
  const [made, setMade] = useState<api.CreatedKey | null>(null);
  const resource = useResource(async (signal) => (me.has_keys ? (await client.request('GET /api/v1/keys', { signal })).items : []), []);
  // An administrator with a key for some repositories may not create keys either.
  const canAdd = me.has_keys && me.access === 'admin' && me.repositories === null;
  const add = canAdd && <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>New key</Button>;
  return (
    <Page title="Keys" actions={add}>
      {!me.has_keys ? <Empty icon="keys" title="No keys here">This deployment authenticates its users in another way.</Empty> : (
        <Loaded resource={resource}>
          {(keys) => keys.length === 0 ? <Empty icon="keys" title="No keys yet">A program or a colleague gets a key of their own.</Empty>
            : <List keys={keys} onChange={resource.reload} />}
        </Loaded>
      )}
      {isAdding && <NewKey onClose={() => setAdding(false)} onMade={(key) => {
        setMade(key);
        resource.reload();
      }} />}
      {made !== null && (
        <Dialog title="Copy your key now" onClose={() => setMade(null)}>
          <h2>Copy your key now</h2>
          <p>It is shown only this once.</p>
          <p class="banner secret"><code>{made.key}</code><CopyButton text={made.key} /></p>
          <footer><Button kind="primary" onClick={() => setMade(null)}>Done</Button></footer>
        </Dialog>
      )}
    </Page>
  );
}

function List({ keys, onChange }: { readonly keys: readonly api.Key[]; readonly onChange: () => void }) {
  const { client, me } = currentSession();
  // A key for some repositories can revoke only itself.
  const canRevoke = (key: api.Key): boolean => canChange() && (me.repositories === null || key.is_own);
  const revoke = ({ id, name, is_own: isOwn }: api.Key) => ask({
    title: `Revoke ${name}?`, submit: 'Revoke',
    text: isOwn ? 'You are using this key: you will be logged out at once.' : 'It stops working at once, also in open streams.',
    onSubmit: () => client.request('DELETE /api/v1/keys/{key}', { path: { key: id } }).then(onChange),
  });
  return (
    <Table items={keys} keyOf={({ id }) => id} rowClass={({ state }) => (state === 'valid' ? '' : 'off')} columns={[
      ['Name', 'main', ({ name, is_own: isOwn }) => <>{name}{isOwn && <span class="tag">this one</span>}</>],
      ['Status', '', ({ state }) => <Status value={state} />],
      ['Access', 'wide', ({ access }) => accessNames[access]],
      ['Owner', 'wide', ({ user_id: user }) => user],
      ['Repositories', 'wide dim', ({ repositories }) => repositories?.join(', ') ?? 'All'],
      ['Expires', 'wide dim', ({ expires_at: at }) => (at === null ? 'Never' : <Time at={at} />)],
      ['', 'right', (key) => key.state === 'valid' && canRevoke(key) && <Button onClick={() => revoke(key)}>Revoke</Button>],
    ]} />
  );
}

const keyLifetimes = [['', 'Never'], ['86400', 'In a day'], ['2592000', 'In 30 days'], ['31536000', 'In a year']] as const;
const accesses = ['full', 'read', 'admin'] as const;

function NewKey({ onClose, onMade }: { readonly onClose: () => void; readonly onMade: (key: api.CreatedKey) => void }) {
  const { client, me } = currentSession();
  const [isLimited, setLimited] = useState(false);
  const create = async ({ name = '', user, access, life, repositories }: FormTexts) => onMade(await client.request('POST /api/v1/keys', {
    body: {
      name, user_id: user, access: accesses.find((one) => one === access), repositories: repositories?.match(/[^\s,]+/g) ?? undefined,
      expires_in_seconds: life === undefined ? undefined : Number(life),
    },
  }));
  return (
    <FormDialog title="New key" submit="Create" onClose={onClose} onSubmit={create}>
      <Field label="Name" hint="To recognize it, for example the program that uses it.">
        <input name="name" required spellcheck={false} />
      </Field>
      <Field label="Owner" hint={isLimited ? 'A key for some repositories needs an owner of its own, for example its name.'
        : `The owner of everything that the key creates. Empty: ${me.user_id}.`}>
        <input name="user" required={isLimited} spellcheck={false} />
      </Field>
      <div class="pair">
        <Field label="Access"><Select name="access" options={accesses.map((one) => [one, accessNames[one]])} /></Field>
        <Field label="Expires"><Select name="life" options={keyLifetimes} /></Field>
      </div>
      <Field label="Repositories" hint="Patterns, such as acme/*. Empty: all.">
        <input name="repositories" spellcheck={false} placeholder="acme/*"
          onInput={(event) => setLimited(event.currentTarget.value.trim() !== '')} />
      </Field>
    </FormDialog>
  );
}
