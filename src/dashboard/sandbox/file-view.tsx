import { useLayoutEffect, useState } from 'preact/hooks';
import { isFailure, type Sandbox } from '../../client/index.ts';
import { useDraft } from '../drafts.ts';
import { bytes } from '../format.ts';
import { useResource } from '../live-resources.ts';
import { setQuery } from '../route.ts';
import { canChange } from '../session.ts';
import { ActionButton, DownloadButton, toast } from '../ui/actions.tsx';
import { Button } from '../ui/controls.tsx';
import { ask } from '../ui/dialog.tsx';
import { Empty, Loaded } from '../ui/page.tsx';

/** Longer files, in bytes, are not shown, but can be saved. */
const maxShown = 1 << 20;

interface FileText {
  /** With line feeds only, as a `<textarea>` returns it, and without the byte order mark. */
  readonly shown: string;
  /** Returns an edited text with the line ends and the byte order mark of the file. Null if the file mixes line ends: they would change. */
  readonly restore: ((edited: string) => string) | null;
}

interface ReadFile {
  readonly size: number;
  /** Null if there is no file any more. */
  readonly etag: string | null;
  /** Null if it is too long, or not text. */
  readonly text: FileText | null;
}

const noFile: ReadFile = { size: 0, etag: null, text: null };

interface FileViewProps {
  readonly sandbox: Sandbox;
  readonly path: string;
}

/** Loads a file and keeps an edit of it. */
function useFile({ sandbox, path }: FileViewProps) {
  const [draft, change] = useDraft(`${sandbox.id}:${path}`);
  const edit = canChange() ? draft : null;
  const resource = useResource(async (signal) => await readFile({ sandbox, path }, signal).catch((error: unknown) => {
    // The path is of a link to a directory.
    if (isFailure(error, 'wrong_file_type') && error.context.file_type === 'directory') setQuery({ file: null, path });
    if (edit === null || !isFailure(error, 'file_not_found')) throw error;
    return noFile;
  }), [path]);
  const { data } = resource;
  const shown = data?.text?.shown;
  // If the file has the text already, for example because the response to a save was lost, nothing is left to save.
  useLayoutEffect(() => change((present) => (present?.text === shown ? null : present)), [shown]);
  const restore = data?.text?.restore ?? (edit && ((text: string) => text));
  const write = (text: string) => change((present) => (text === shown ? null : { text, etag: (present ?? data)?.etag ?? null }));
  const save = async () => {
    if (edit === null || data === null || restore === null) return;
    try {
      const condition = data.etag === null ? { ifNoneMatch: '*' } as const : { ifMatch: data.etag };
      const { size, etag } = await sandbox.files.write(path, restore(edit.text), condition);
      resource.replace({ size, etag, text: { shown: edit.text, restore } });
      change((present) => present && (present.text === edit.text ? null : { ...present, etag }));
      toast('Saved.');
    } catch (error) {
      if (!isFailure(error, 'precondition_failed')) throw error;
      resource.reload();
    }
  };
  const discard = async () => {
    change(() => null);
    resource.reload();
  };
  const isStale = edit !== null && data !== null && strong(edit.etag) !== strong(data.etag);
  return { resource, edit, isStale, isEditable: canChange() && restore !== null, write, save, discard };
}

/** Shows a text file for reading and editing. */
export function FileView({ sandbox, path }: FileViewProps) {
  const { resource, edit, isStale, isEditable, write, save, discard } = useFile({ sandbox, path });
  const [isFileShown, showFile] = useState(false);
  const { data } = resource;
  const inFile = data?.text?.shown;
  const text = edit === null || (isStale && isFileShown) ? inFile ?? edit?.text : edit.text;
  return (
    <>
      <div class="bar">
        <p class="dim">{data !== null && bytes(data.size)}</p>
        <DownloadButton name={path.split('/').pop() ?? 'file'} read={() => sandbox.files.read(path)}>Download</DownloadButton>
        {canChange() && inFile !== undefined && !isEditable && (
          <p class="dim">It mixes kinds of line ends, which editing here would change.</p>
        )}
        {isEditable && <ActionButton kind="primary" disabled={edit === null || isStale} onAct={save}>Save</ActionButton>}
      </div>
      {isStale && (
        <div class="banner bad" role="alert">
          <p>The file {data?.etag === null ? 'was deleted' : 'has changed'} since you began to edit it.</p>
          {inFile !== undefined && <Button onClick={() => showFile(!isFileShown)}>{isFileShown ? 'Show my text' : 'Show the file'}</Button>}
          <ActionButton onAct={save}>Overwrite the file</ActionButton>
          <Button onClick={() => ask({
            title: 'Discard your text?', submit: 'Discard', text: 'What you have typed is lost.', onSubmit: discard,
          })}>Discard my text</Button>
        </div>
      )}
      <Loaded resource={resource}>
        {({ size }) => text === undefined
          ? <Empty icon="file" title={size > maxShown ? 'Too long to show' : 'Not a text file'}>Download it to see it.</Empty>
          : <textarea class="editor" spellcheck={false} aria-label={path} readOnly={!isEditable || (isStale && isFileShown)} value={text}
            onInput={(event) => write(event.currentTarget.value)} />}
      </Loaded>
    </>
  );
}

/** A proxy that compresses makes the tags of some responses weak. */
function strong(etag: string | null | undefined): string | undefined {
  return etag?.replace(/^W\//, '');
}

async function readFile({ sandbox, path }: FileViewProps, signal: AbortSignal): Promise<ReadFile> {
  const response = await sandbox.files.read(path, { to: maxShown, signal });
  const content = await response.arrayBuffer();
  const size = Number(/\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '')?.[1] ?? content.byteLength);
  return { size, etag: response.headers.get('ETag'), text: size > maxShown ? null : textIn(content) };
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
