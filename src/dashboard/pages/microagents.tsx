import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { useResource } from '../live-resources.ts';
import { navigate, route } from '../route.ts';
import { canChange, currentSession } from '../session.ts';
import { Button, Facts, Link, Time } from '../ui/controls.tsx';
import { Markdown } from '../ui/markdown.tsx';
import { Empty, Loaded, Page } from '../ui/page.tsx';
import { RepositoryInput } from '../ui/repository-input.tsx';

export function MicroagentsPage() {
  const { path: [, name = ''], query } = route.value;
  const [repository, setRepository] = useState(name);
  const file = query.get('file');
  const talk = canChange() && name !== '' && (
    <Button icon="conversations" onClick={() => navigate(['conversations'], { new: 'yes', repository: name })}>
      New conversation
    </Button>
  );
  return (
    <Page title="Microagents" actions={talk}>
      <form class="filters" onSubmit={(event) => {
        event.preventDefault();
        if (repository !== '' && repository !== name) navigate(['microagents', repository]);
      }}>
        <RepositoryInput value={repository} onInput={setRepository} />
        <Button type="submit" disabled={repository === '' || repository === name}>Show</Button>
      </form>
      {name === '' ? <Empty icon="microagents" title="Pick a repository">Type a part of its name above.</Empty>
        : <Microagents key={name} repository={name} file={file} />}
    </Page>
  );
}

function Microagents({ repository, file }: { readonly repository: string; readonly file: string | null }) {
  const resource = useResource((signal) => currentSession().client.request(
    'GET /api/user/repository/{repository_name}/microagents', { path: { repository_name: repository }, signal },
  ), [repository]);
  return (
    <Loaded resource={resource}>
      {(items) => items.length === 0 ? (
        <Empty icon="microagents" title="No microagents">They are Markdown files in .skep/microagents of the default branch.</Empty>
      ) : (
        <div class="split">
          <nav class="choices" aria-label="Microagents">
            {items.map(({ path, name }) => (
              <Link key={path} to={['microagents', repository]} query={{ file: path }} current={path === file}>{name}</Link>
            ))}
          </nav>
          {file === null ? <Empty icon="microagents" title="Choose a microagent to read it" />
            : <Content key={file} repository={repository} file={file} />}
        </div>
      )}
    </Loaded>
  );
}

function Content({ repository, file }: { readonly repository: string; readonly file: string }) {
  const resource = useResource((signal) => currentSession().client.request(
    'GET /api/user/repository/{repository_name}/microagents/content',
    { path: { repository_name: repository }, query: { file_path: file }, signal },
  ), [repository, file]);
  return <Loaded resource={resource}>{(content) => <Article content={content} />}</Loaded>;
}

function Article({ content: microagent }: { readonly content: api.MicroagentContentResponse }) {
  const { path, content, triggers, front_matter: matter, front_matter_problem: problem, created_at: createdAt } = microagent;
  const rest = Object.entries(matter ?? {}).filter(([name]) => name !== 'triggers');
  return (
    <article class="card">
      <h2 class="id">{path}</h2>
      {problem !== null && <p class="banner bad">{problem.detail}</p>}
      <Facts facts={[
        ['Triggers', triggers.length > 0 && triggers.map((trigger) => <span key={trigger} class="tag">{trigger}</span>)],
        ...rest.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)] as const),
        ['Created', <Time at={createdAt} />],
      ]} />
      <Markdown text={content} />
    </article>
  );
}
