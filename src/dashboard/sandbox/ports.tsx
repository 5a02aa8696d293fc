import { useState } from 'preact/hooks';
import type { api, Sandbox } from '../../client/index.ts';
import { canChange } from '../session.ts';
import { ActionButton, CopyButton } from '../ui/actions.tsx';
import { ExternalLink, Field, Select, Table, Time } from '../ui/controls.tsx';
import { Empty } from '../ui/page.tsx';

const lifetimes = [['3600', 'An hour'], ['86400', 'A day'], ['604800', 'A week']] as const;

/** The ports of a sandbox, with links for a browser. A sandbox that does not run has those that its spec has today. */
export function Ports({ sandbox, spec }: { readonly sandbox: Sandbox; readonly spec: api.SandboxSpec | undefined }) {
  const [seconds, setSeconds] = useState('3600');
  const [links, setLinks] = useState<Readonly<Record<number, api.PortLink>>>({});
  const ports: readonly Pick<api.SandboxPort, 'name' | 'port'>[] | undefined = sandbox.state.exposed_urls ?? spec?.ports;
  if (ports === undefined) return <Empty icon="external" title="No ports are known">Its spec is no longer configured.</Empty>;
  if (ports.length === 0) return <Empty icon="external" title="No ports">The spec of this sandbox names none.</Empty>;
  const publicPorts = new Set(spec?.ports.flatMap((one) => (one.public ? [one.port] : [])));
  return (
    <>
      {canChange() && (
        <>
          <p class="dim">Everybody with the link can open the port in a browser. The link ends at the latest with your key.</p>
          <Field label="Links end after">
            <Select value={seconds} onChange={setSeconds} options={lifetimes} />
          </Field>
        </>
      )}
      <Table items={ports} keyOf={({ port }) => port} columns={[
        ['Name', 'main', ({ name, port }) => (
          <>
            {name}{publicPorts.has(port) && <span class="tag">public</span>}
            {links[port] && <small class="dim">Ends <Time at={links[port].expires_at} /></small>}
          </>
        )],
        ['Port', 'number', ({ port }) => port],
        ['Link', 'clip', ({ port }) => links[port] && <ExternalLink url={links[port].url}>{links[port].url}</ExternalLink>],
        ['', 'right', ({ port }) => (
          <>
            {links[port] && <CopyButton text={links[port].url} />}
            {canChange() && <ActionButton icon="external" onAct={async () => {
              const made = await sandbox.link(port, { expires_in_seconds: Number(seconds) });
              setLinks((last) => ({ ...last, [port]: made }));
            }}>Make a link</ActionButton>}
          </>
        )],
      ]} />
    </>
  );
}
