import type { api } from '../../client/index.ts';
import { bytes } from '../format.ts';
import { canChange } from '../session.ts';
import { idlePolicyText, useSpecs } from '../specs.ts';
import { Facts, Link } from '../ui/controls.tsx';
import { Icon } from '../ui/icons.tsx';
import { Loaded, Page } from '../ui/page.tsx';

export function SpecsPage() {
  const resource = useSpecs();
  return (
    <Page title="Specs">
      <p class="dim">Templates for sandboxes. They are part of the configuration of the server.</p>
      <Loaded resource={resource}>
        {(specs) => <div class="grid">{specs.map((spec, index) => <Spec key={spec.id} spec={spec} isDefault={index === 0} />)}</div>}
      </Loaded>
    </Page>
  );
}

const wakes = { none: 'Never', freeze: 'If it is frozen', stop: 'If it is frozen or stopped' } as const;

function Spec({ spec, isDefault }: { readonly spec: api.SandboxSpec; readonly isDefault: boolean }) {
  const { id, description, image, command, working_dir: directory, allowed_secrets: secrets, ports, agent, resources } = spec;
  const env = Object.entries(spec.initial_env);
  return (
    <section class="card">
      <header class="bar">
        <h2 class="id">{id}</h2>
        {isDefault && <span class="tag">default</span>}
        {canChange() && <Link class="button" to={['sandboxes']} query={{ new: id }}><Icon name="play" />Start</Link>}
      </header>
      {description !== null && <p>{description}</p>}
      <Facts facts={[
        ['Image', image !== null && <code>{image}</code>],
        ['Command', command !== null && <code>{command.join(' ')}</code>],
        ['Directory', <code>{directory}</code>],
        ['Agent', agent?.protocol],
        ['Ports', ports.map(({ name, port }) => `${name} ${port}`).join(', ')],
        ['Resumed by a request to a port', ports.length > 0 && wakes[spec.wake_on_access]],
        ['Automatic actions', idlePolicyText(spec.rest)],
        ['CPUs', resources.cpus],
        ['Memory', resources.memory_bytes !== null && bytes(resources.memory_bytes)],
        ['Processes', resources.pids],
        ['Variables', env.length > 0 && env.map(([name, value]) => <p key={name}><code>{name}={value}</code></p>)],
        ['Secrets allowed', secrets.join(', ')],
      ]} />
    </section>
  );
}
