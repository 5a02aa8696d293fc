import type { api } from '../../client/index.ts';
import { bytes } from '../format.ts';
import { href } from '../route.ts';
import { canChange } from '../session.ts';
import { idlePolicyText, useSpecs } from '../specs.ts';
import { texts } from '../texts.ts';
import { Facts } from '../ui/controls.tsx';
import { Loaded } from '../ui/feedback.tsx';
import { Icon } from '../ui/icons.tsx';
import { Page } from '../ui/page.tsx';

export function SpecsPage() {
  const resource = useSpecs();
  return (
    <Page title={texts.nav.specs}>
      <p class="dim">{texts.specs.hint}</p>
      <Loaded resource={resource}>
        {(specs) => <div class="grid">{specs.map((spec, index) => <Spec key={spec.id} spec={spec} isDefault={index === 0} />)}</div>}
      </Loaded>
    </Page>
  );
}

function Spec({ spec, isDefault }: { readonly spec: api.SandboxSpec; readonly isDefault: boolean }) {
  const { id, description, image, command, working_dir: directory, allowed_secrets: secrets, ports, agent, resources } = spec;
  const env = Object.entries(spec.initial_env);
  return (
    <section class="card">
      <header class="bar">
        <h2 class="id">{id}</h2>
        {isDefault && <span class="tag">{texts.specs.default}</span>}
        {canChange() && <a class="button plain" href={href(['sandboxes'], { new: id })}><Icon name="play" />{texts.startSandbox.start}</a>}
      </header>
      {description !== null && <p>{description}</p>}
      <Facts facts={[
        [texts.specs.image, image !== null && <code>{image}</code>],
        [texts.specs.command, command !== null && <code>{command.join(' ')}</code>],
        [texts.specs.directory, <code>{directory}</code>],
        [texts.specs.agent, agent?.protocol],
        [texts.sandbox.ports, ports.map(({ name, port }) => `${name} ${port}`).join(', ')],
        [texts.specs.wake, ports.length > 0 && texts.specs.wakes[spec.wake_on_access]],
        [texts.rest.title, idlePolicyText(spec.rest)],
        [texts.specs.cpus, resources.cpus],
        [texts.usage.memory, resources.memory_bytes !== null && bytes(resources.memory_bytes)],
        [texts.usage.pids, resources.pids],
        [texts.specs.env, env.length > 0 && env.map(([name, value]) => <p key={name}><code>{name}={value}</code></p>)],
        [texts.specs.secrets, secrets.join(', ')],
      ]} />
    </section>
  );
}
