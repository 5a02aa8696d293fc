import { useState } from 'preact/hooks';
import type { api, Sandbox } from '../../client/index.ts';
import { texts } from '../texts.ts';
import { ActionButton, CopyButton, Field, ExternalLink, Select, Table, Time } from '../ui/controls.tsx';
import { Empty } from '../ui/feedback.tsx';

interface PortsProps {
  readonly sandbox: Sandbox;
  readonly ports: readonly api.SandboxPort[];
}

/** The ports in the spec, with links for a browser. */
export function Ports({ sandbox, ports }: PortsProps) {
  const [seconds, setSeconds] = useState('3600');
  const [links, setLinks] = useState<Readonly<Record<number, api.PortLink>>>({});
  if (ports.length === 0) return <Empty icon="external" title={texts.ports.none}>{texts.ports.noneHint}</Empty>;
  return (
    <>
      <p class="dim">{texts.ports.hint}</p>
      <Field label={texts.ports.life}>
        <Select label={texts.ports.life} value={seconds} onChange={setSeconds} options={Object.entries(texts.ports.lives)} />
      </Field>
      <Table items={ports} keyOf={({ port }) => port} columns={[
        [texts.ports.name, 'main', ({ name, port, public: isPublic }) => (
          <>
            {name}{isPublic && <span class="tag">{texts.ports.public}</span>}
            {links[port] && <small class="dim">{texts.ports.until} <Time at={links[port].expires_at} /></small>}
          </>
        )],
        [texts.ports.port, 'number', ({ port }) => port],
        [texts.ports.link, 'clip', ({ port }) => links[port] && <ExternalLink url={links[port].url}>{links[port].url}</ExternalLink>],
        ['', 'right', ({ port }) => (
          <>
            {links[port] && <CopyButton text={links[port].url} />}
            <ActionButton icon="external" onAct={async () => {
              const made = await sandbox.link(port, { expires_in_seconds: Number(seconds) });
              setLinks((last) => ({ ...last, [port]: made }));
            }}>{texts.ports.make}</ActionButton>
          </>
        )],
      ]} />
    </>
  );
}
