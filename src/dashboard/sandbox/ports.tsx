import { useState } from 'preact/hooks';
import type { api, Sandbox } from '../../client/index.ts';
import { texts } from '../texts.ts';
import { ActionButton, CopyButton, Field, Head, Select, Time } from '../ui/controls.tsx';
import { Empty } from '../ui/feedback.tsx';

interface PortsProps {
  readonly sandbox: Sandbox;
  readonly ports: readonly api.SandboxPort[];
}

/** The ports that the spec names, and links to them for a browser. */
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
      <table>
        <Head columns={[[texts.ports.name], [texts.ports.port], [texts.ports.link], ['']]} />
        <tbody>
          {ports.map(({ name, port, public: isPublic }) => {
            const link = links[port];
            return (
              <tr key={port}>
                <td class="main">
                  {name}{isPublic && <span class="tag">{texts.ports.public}</span>}
                  {link !== undefined && <small class="dim">{texts.ports.until} <Time at={link.expires_at} /></small>}
                </td>
                <td class="number">{port}</td>
                <td class="clip">
                  {link !== undefined && <a href={link.url} target="_blank" rel="noopener noreferrer">{link.url}</a>}
                </td>
                <td class="right">
                  {link !== undefined && <CopyButton text={link.url} />}
                  <ActionButton icon="external" onAct={async () => {
                    const made = await sandbox.link(port, { expires_in_seconds: Number(seconds) });
                    setLinks((last) => ({ ...last, [port]: made }));
                  }}>{texts.ports.make}</ActionButton>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </>
  );
}
