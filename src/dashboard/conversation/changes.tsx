import { useState } from 'preact/hooks';
import type { api, Conversation } from '../../client/index.ts';
import { plural, readableName } from '../format.ts';
import { useResource } from '../live-resources.ts';
import { canChange, currentSession } from '../session.ts';
import { DownloadButton, toast } from '../ui/actions.tsx';
import { Button, Checkbox, Field, ExternalLink, Time } from '../ui/controls.tsx';
import { DiffView, patchLines } from '../ui/diff.tsx';
import { type FormTexts, FormDialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/page.tsx';

const route = 'GET /api/v1/app-conversations/{id}/changes';

interface ChangesProps {
  readonly conversation: Conversation;
  /** The last event about the work tree. The changes are read again when it is another one: at the end of a turn, not at each chunk. */
  readonly workTree: api.WorkTreeChangedEventData | null;
}

/** Shows the agent's changes and how to publish them. Reading them wakes nothing. */
export function Changes({ conversation, workTree }: ChangesProps) {
  const { id, state } = conversation;
  const { client } = currentSession();
  const resource = useResource((signal) => client.request(route, { path: { id }, signal }), [id, workTree]);
  const [isPublishing, setPublishing] = useState(false);
  if (state.selected_repository === null) {
    return (
      <Empty icon="branch" title="No repository">Only a conversation about a repository has changes.</Empty>
    );
  }
  return (
    <Loaded resource={resource}>
      {(changes) => (
        <div class="changes">
          <header class="bar">
            <p class="dim">
              {plural(changes.files.length, 'file')} changed, {plural(changes.commits.length, 'commit')}
              {changes.kept_at !== null && <> · as of <Time at={changes.kept_at} /></>}
            </p>
            <DownloadButton name={`${id}.patch`} disabled={changes.files.length === 0}
              read={() => client.stream(route, { path: { id }, query: { format: 'patch' } })}>Patch</DownloadButton>
            <Button kind="primary" icon="branch" disabled={!canPublish(state, changes)}
              onClick={() => setPublishing(true)}>Publish</Button>
          </header>
          {!changes.complete && <p class="banner">
            Some work is left out: files that git could not read, changes in a git repository inside the work tree, commits of other
            branches, tags, stashes or work trees, or what was done after the changes were saved.
          </p>}
          <Published changes={changes} />
          {changes.files.length === 0 && (
            <Empty icon="file" title="No changes">What the agent changes in the repository shows up here.</Empty>
          )}
          {changes.files.map((file) => <ChangedFile key={file.path} id={id} file={file} workTree={workTree} />)}
          {isPublishing && <Publish conversation={conversation} onClose={() => setPublishing(false)} onEnd={resource.reload} />}
        </div>
      )}
    </Loaded>
  );
}

/** Reverted changes can be published too, if the branch has them. */
function canPublish({ archived_at: archivedAt }: Conversation['state'], { files, published }: api.ConversationChanges): boolean {
  return canChange() && archivedAt === null && (files.length > 0 || published.length > 0);
}

function Published({ changes }: { readonly changes: api.ConversationChanges }) {
  return changes.published.map(({ branch, commit, pull_request: request }) => (
    <p key={branch} class="banner good">
      <Icon name="check" />
      <span>Published to <code>{branch}</code>{isBehind(commit, changes) && <> (not the last commit)</>}</span>
      {request !== null && <ExternalLink url={request.url}>Request #{request.number}</ExternalLink>}
    </p>
  ));
}

/** A publication of uncommitted changes is a commit that the sandbox does not have. Whether they have changed since is not known. */
function isBehind(published: string, { head_commit: head, commits, files }: api.ConversationChanges): boolean {
  return published !== head && (commits.some(({ commit }) => commit === published) || files.every(({ committed }) => committed));
}

interface ChangedFileProps extends Pick<ChangesProps, 'workTree'> {
  readonly id: string;
  readonly file: api.FileChange;
}

const letters = { added: 'A', modified: 'M', deleted: 'D', renamed: 'R', mode_changed: 'X' } as const;

function ChangedFile({ id, file, workTree }: ChangedFileProps) {
  const [isOpen, setOpen] = useState(false);
  const { path, old_path: oldPath, status, lines_added: added, lines_removed: removed, binary } = file;
  return (
    <details class="fold file" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="chevron" />
        <span class={`letter ${status}`} title={readableName(status)}>{letters[status]}</span>
        <code class="clip">{oldPath !== null && <span class="dim">{oldPath} → </span>}{path}</code>
        {!file.committed && <span class="tag">not committed</span>}
        <span class="number">{binary ? 'binary' : <><ins>+{added}</ins> <del>−{removed}</del></>}</span>
      </summary>
      {isOpen && !binary && <FilePatch id={id} file={file} workTree={workTree} />}
    </details>
  );
}

function FilePatch({ id, file: { path }, workTree }: ChangedFileProps) {
  const resource = useResource(async (signal) => {
    const response = await currentSession().client.stream(route, { path: { id }, query: { format: 'patch', path }, signal });
    return await response.text();
  }, [id, path, workTree]);
  return <Loaded resource={resource} rows={2}>{(patch) => <DiffView lines={patchLines(patch)} />}</Loaded>;
}

interface PublishProps extends Pick<ChangesProps, 'conversation'> {
  readonly onClose: () => void;
  /** Called after each attempt. One that fails may have pushed the branch. */
  readonly onEnd: () => void;
}

function Publish({ conversation: { id, state }, onClose, onEnd }: PublishProps) {
  const [opensRequest, setOpensRequest] = useState(true);
  const publish = async ({ message, branch, description = '', base, draft }: FormTexts) => {
    const title = message ?? 'Changes of an agent';
    const body = {
      branch,
      commit_message: message,
      pull_request: opensRequest ? { title, body: description, draft: draft !== undefined, base } : undefined,
    };
    const { client } = currentSession();
    const published = await client.request('POST /api/v1/app-conversations/{id}/publish', { path: { id }, body }).finally(onEnd);
    toast(`Published to ${published.branch}.`);
  };
  return (
    <FormDialog title="Publish the changes" submit="Publish" onClose={onClose} onSubmit={publish}>
      <p class="dim">Commits what is not committed, and pushes a branch with the credential of the server.</p>
      <Field label="Commit message and title"><input name="message" defaultValue={state.title ?? ''} /></Field>
      <Field label="Branch" hint="Empty: a branch for this conversation only."><input name="branch" spellcheck={false} /></Field>
      <Checkbox label="Open a pull request" checked={opensRequest} onChange={setOpensRequest} />
      <div style={{ display: opensRequest ? 'contents' : 'none' }}>
        <Field label="Description"><textarea name="description" rows={3} /></Field>
        <Field label="Merge into the branch" hint="Empty: the default branch."><input name="base" spellcheck={false} /></Field>
        <Checkbox label="As a draft" name="draft" />
      </div>
    </FormDialog>
  );
}
