import { useRef } from 'preact/hooks';
import type { api, Sandbox } from '../../client/index.ts';
import { useDraft } from '../drafts.ts';
import { bytes, plural } from '../format.ts';
import { useResource } from '../live.ts';
import { route } from '../route.ts';
import { canChange } from '../session.ts';
import { ActionButton, DownloadButton, toast, useAction } from '../ui/actions.tsx';
import { Button, Link, Table, Time } from '../ui/controls.tsx';
import { ask } from '../ui/dialog.tsx';
import { Icon } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/page.tsx';

const maxListed = 1000;

/** Browses the files of a sandbox, also of a paused one. `home` is the first directory. */
export function Files({ sandbox, home }: { readonly sandbox: Sandbox; readonly home: string }) {
  const { query } = route.value;
  const path = query.get('path') ?? home;
  const file = query.get('file');
  return (
    <section class="files">
      <Crumbs sandbox={sandbox} path={file ?? path} />
      {file === null ? <Directory key={path} sandbox={sandbox} path={path} /> : <FileView key={file} sandbox={sandbox} path={file} />}
    </section>
  );
}

function Crumbs({ sandbox: { id }, path }: { readonly sandbox: Sandbox; readonly path: string }) {
  const parts = path.split('/').filter(Boolean);
  return (
    <nav class="crumbs" aria-label="Path">
      <Link to={['sandboxes', id]} query={{ tab: 'files', path: '/' }}>/</Link>
      {parts.map((part, index) => {
        const above = `/${parts.slice(0, index + 1).join('/')}`;
        return index === parts.length - 1 ? <b key={above}>{part}</b>
          : <Link key={above} to={['sandboxes', id]} query={{ tab: 'files', path: above }}>{part}</Link>;
      })}
    </nav>
  );
}

function Directory({ sandbox, path }: { readonly sandbox: Sandbox; readonly path: string }) {
  const resource = useResource(async (signal) => {
    const found: api.FileEntry[] = [];
    for await (const entry of sandbox.files.list(path, { signal })) if (found.push(entry) === maxListed) break;
    return found.toSorted((a, b) => Number(b.type === 'directory') - Number(a.type === 'directory') || a.name.localeCompare(b.name));
  }, [path]);
  return (
    <>
      <div class="bar">
        <p class="dim">
          {resource.data !== null && plural(resource.data.length, 'entry', 'entries')}
          {resource.data?.length === maxListed && ' or more; only the first are shown'}
        </p>
        {canChange() && <Upload sandbox={sandbox} path={path} onDone={resource.reload} />}
        <DownloadButton name={`${path.split('/').pop() || 'root'}.tar`} read={() => sandbox.files.readArchive(path)}>
          Download all
        </DownloadButton>
      </div>
      <Loaded resource={resource}>
        {(files) => files.length === 0 ? <Empty icon="folder" title="Empty directory">Upload a file to put something here.</Empty> : (
          <Table items={files} keyOf={(file) => file.path} columns={[
            ['Name', 'main', (file) => <FileName sandbox={sandbox} file={file} />],
            ['Size', 'right number', ({ type, size }) => type === 'file' && bytes(size)],
            ['Modified', 'right wide dim', ({ modified_at: at }) => <Time at={at} />],
            ['', 'right over', (file) => canChange() && <RemoveFile sandbox={sandbox} file={file} onDone={resource.reload} />],
          ]} />
        )}
      </Loaded>
    </>
  );
}

interface FileProps {
  readonly sandbox: Sandbox;
  readonly file: api.FileEntry;
}

function FileName({ sandbox, file: { path, name, type, target } }: FileProps) {
  const isDirectory = type === 'directory';
  const query = { tab: 'files', [isDirectory ? 'path' : 'file']: path };
  return (
    <>
      <Icon name={isDirectory ? 'folder' : 'file'} />
      {type === 'other' ? <code>{name}</code> : <Link class="row-link id" to={['sandboxes', sandbox.id]} query={query}>{name}</Link>}
      {target !== null && <span class="dim"> → {target}</span>}
    </>
  );
}

function RemoveFile({ sandbox, file: { path, name, type }, onDone }: FileProps & { readonly onDone: () => void }) {
  const recursive = type === 'directory';
  const title = `Delete ${name}`;
  return <Button kind="quiet" icon="trash" label={title} onClick={() => ask({
    title, submit: 'Delete',
    text: recursive ? 'Everything in it is lost.' : 'The file is lost.',
    onSubmit: () => sandbox.files.remove(path, { recursive }).then(onDone),
  })} />;
}

function Upload({ sandbox, path, onDone }: { readonly sandbox: Sandbox; readonly path: string; readonly onDone: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [isBusy, run] = useAction();
  const upload = async (files: readonly File[]) => {
    for (const file of files) await sandbox.files.write(`${path.replace(/\/$/, '')}/${file.name}`, file);
    toast(`${plural(files.length, 'file')} uploaded.`);
    onDone();
  };
  return (
    <>
      <input ref={input} type="file" multiple hidden aria-label="Upload" onChange={(event) => {
        const files = [...event.currentTarget.files ?? []];
        void run(() => upload(files));
      }} />
      <Button icon="upload" disabled={isBusy} onClick={() => input.current?.click()}>
        {isBusy ? 'Uploading …' : 'Upload'}
      </Button>
    </>
  );
}

/** Longer files, in bytes, are not shown, but can be saved. */
const maxShown = 1 << 20;

interface FileText {
  /** With line feeds only, as a `<textarea>` returns it, and without the byte order mark. */
  readonly shown: string;
  /** Returns an edited text with the line ends and the byte order mark of the file. Null if the file mixes line ends: they would change. */
  readonly restore: ((edited: string) => string) | null;
}

/** Shows a text file for reading and editing. */
function FileView({ sandbox, path }: { readonly sandbox: Sandbox; readonly path: string }) {
  const [draft, change] = useDraft(`${sandbox.id}:${path}`);
  const edited = draft?.text ?? null;
  const resource = useResource(async (signal) => {
    const response = await sandbox.files.read(path, { to: maxShown, signal });
    const content = await response.arrayBuffer();
    const size = Number(/\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '')?.[1] ?? content.byteLength);
    return { text: size > maxShown ? null : textIn(content), size };
  }, [path]);
  const { data } = resource;
  const restore = data?.text?.restore;
  const save = async (content: string) => {
    await sandbox.files.write(path, content);
    toast('Saved.');
    change((present) => (present?.text === edited ? null : present));
    resource.reload();
  };
  return (
    <>
      <div class="bar">
        <p class="dim">{data !== null && bytes(data.size)}</p>
        <DownloadButton name={path.split('/').pop() ?? 'file'} read={() => sandbox.files.read(path)}>Download</DownloadButton>
        {canChange() && restore === null && <p class="dim">It mixes kinds of line ends, which editing here would change.</p>}
        {canChange() && restore && (
          <ActionButton kind="primary" disabled={edited === null || edited === data?.text?.shown} onAct={() => save(restore(edited ?? ''))}>
            Save
          </ActionButton>
        )}
      </div>
      <Loaded resource={resource}>
        {({ text, size }) => text === null
          ? <Empty icon="file" title={size > maxShown ? 'Too long to show' : 'Not a text file'}>Download it to see it.</Empty>
          : <textarea class="editor" spellcheck={false} aria-label={path} readOnly={!canChange() || text.restore === null}
            value={edited ?? text.shown}
            onInput={({ currentTarget: { value } }) => change(() => ({ text: value }))} />}
      </Loaded>
    </>
  );
}

function textIn(content: ArrayBuffer): FileText | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
    if (text.includes('\0')) return null;
    const mark = text.startsWith('\uFEFF') ? '\uFEFF' : '';
    const lineEnd = text.includes('\r\n') ? '\r\n' : '\n';
    const shown = text.slice(mark.length).replaceAll(/\r\n?/g, '\n');
    const restore = (edited: string) => mark + edited.replaceAll('\n', lineEnd);
    return { shown, restore: restore(shown) === text ? restore : null };
  } catch {
    return null;
  }
}
