import type { Sandbox } from '../../client/index.ts';
import { bytes } from '../format.ts';
import { useResource } from '../live.ts';
import { canChange, useDraft } from '../session.ts';
import { ActionButton, DownloadButton, toast } from '../ui/actions.tsx';
import { Empty, Loaded } from '../ui/page.tsx';

/** Longer files, in bytes, are not shown, but can be saved. */
const maxShown = 1 << 20;

interface FileContent {
  /** Null if it is not text, or too long. */
  readonly text: FileText | null;
  readonly size: number;
}

interface FileText {
  /** With line feeds only, as a `<textarea>` returns it, and without the byte order mark. */
  readonly shown: string;
  /** Returns an edited text with the line ends and the byte order mark of the file. Null if the file mixes line ends: they would change. */
  readonly restore: ((edited: string) => string) | null;
}

/** Shows a text file for reading and editing. */
export function FileView({ sandbox, path }: { readonly sandbox: Sandbox; readonly path: string }) {
  const [edited, setEdited] = useDraft(`${sandbox.id}:${path}`);
  const resource = useResource(async (signal): Promise<FileContent> => {
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
    setEdited(null);
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
            onInput={(event) => setEdited(event.currentTarget.value)} />}
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
