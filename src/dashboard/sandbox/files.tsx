import { useRef, useState } from 'preact/hooks';
import { type api, isFailure, type Sandbox, type WriteOptions } from '../../client/index.ts';
import { bytes, plural } from '../format.ts';
import { useResource } from '../live-resources.ts';
import { route } from '../route.ts';
import { canChange } from '../session.ts';
import { DownloadButton, toast, toastFailure, useAction } from '../ui/actions.tsx';
import { Button, Link, Table, Time } from '../ui/controls.tsx';
import { ask } from '../ui/dialog.tsx';
import { Icon } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/page.tsx';
import { FileView } from './file-view.tsx';

/** How many entries are listed first, and how many more at the user's request. */
const listedEntries = 1000;

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
  const [limit, setLimit] = useState(listedEntries);
  const resource = useResource(async (signal) => {
    const found: api.FileEntry[] = [];
    for await (const entry of sandbox.files.list(path, { signal })) if (found.push(entry) === limit) break;
    return found.toSorted((a, b) => Number(b.type === 'directory') - Number(a.type === 'directory') || a.name.localeCompare(b.name));
  }, [path, limit]);
  const hasMore = resource.data?.length === limit;
  return (
    <>
      <div class="bar">
        <p class="dim">
          {resource.data !== null && plural(resource.data.length, 'entry', 'entries')}
          {hasMore && ' or more'}
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
      {hasMore && <p class="more"><Button onClick={() => setLimit(limit + listedEntries)}>Show more</Button></p>}
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

/** How many uploads run, also to directories that are not shown any more. */
let uploads = 0;

addEventListener('beforeunload', (event) => {
  if (uploads > 0) event.preventDefault();
});

function Upload({ sandbox, path, onDone }: { readonly sandbox: Sandbox; readonly path: string; readonly onDone: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [isBusy, run] = useAction();
  const upload = async (files: readonly File[], condition: WriteOptions): Promise<void> => {
    const existing: File[] = [];
    let count = 0;
    uploads += 1;
    for (const file of files) {
      await sandbox.files.write(`${path.replace(/\/$/, '')}/${file.name}`, file, condition).then(
        () => (count += 1),
        (error: unknown) => (isFailure(error, 'precondition_failed') ? existing.push(file) : toastFailure(error, file.name)),
      );
    }
    uploads -= 1;
    if (count > 0) toast(`${plural(count, 'file')} uploaded.`);
    onDone();
    if (existing.length > 0) ask({
      title: `Replace ${existing.map(({ name }) => name).join(', ')}?`, submit: 'Replace',
      text: 'What is in the sandbox under this name is lost.',
      onSubmit: () => upload(existing, {}),
    });
  };
  return (
    <>
      <input ref={input} type="file" multiple hidden aria-label="Upload" onChange={(event) => {
        const files = [...event.currentTarget.files ?? []];
        // So that the same file can be chosen again.
        event.currentTarget.value = '';
        void run(() => upload(files, { ifNoneMatch: '*' }));
      }} />
      <Button icon="upload" disabled={isBusy} onClick={() => input.current?.click()}>
        {isBusy ? 'Uploading …' : 'Upload'}
      </Button>
    </>
  );
}
