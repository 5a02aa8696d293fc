import { useEffect, useState } from 'preact/hooks';
import type { api, Sandbox } from '../../client/index.ts';
import { useResource } from '../live.ts';
import { bytes, orNone } from '../format.ts';
import { texts } from '../texts.ts';
import { Sparkline } from '../ui/charts.tsx';

const samplesShown = 60;
const sampleMs = 5000;

/** The resource usage of a sandbox from now on. */
export function Usage({ sandbox }: { readonly sandbox: Sandbox }) {
  const [samples, setSamples] = useState<readonly api.SandboxUsage[]>([]);
  const isRunning = sandbox.state.status === 'RUNNING';
  const { data, error, reload } = useResource((signal) => sandbox.usage({ signal }), [sandbox.id, isRunning]);
  useEffect(() => {
    if (data !== null) setSamples((last) => [...last, data].slice(-samplesShown));
  }, [data]);
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => {
      if (document.hidden) return;
      // Started again only by the result, because measuring the disk can take long.
      clearInterval(timer);
      reload();
    }, sampleMs);
    return () => clearInterval(timer);
  }, [data, error, isRunning]);
  const last = samples.at(-1);
  if (error !== null && last === undefined) {
    return (
      <section class="card"><h2>{texts.usage.title}</h2><p class="dim">{error.message}</p></section>
    );
  }
  const cpu = samples.flatMap(({ cpu_percent: percent }) => percent ?? []);
  const memory = samples.flatMap(({ memory_bytes: used }) => used ?? []);
  return (
    <section class="card usage">
      <h2>{texts.usage.title}</h2>
      <div class="numbers">
        <figure>
          <figcaption>{texts.usage.cpu}</figcaption><b>{orNone(last?.cpu_percent, (value) => `${value.toFixed(0)} %`)}</b>
          <Sparkline label={texts.usage.cpu} values={cpu} length={samplesShown} max={Math.max(100, ...cpu)} />
        </figure>
        <figure>
          <figcaption>
            {texts.usage.memory}
          </figcaption><b>{orNone(last?.memory_bytes, bytes)}{last?.memory_limit_bytes ? ` / ${bytes(last.memory_limit_bytes)}` : ''}</b>
          <Sparkline label={texts.usage.memory} values={memory} length={samplesShown}
            max={last?.memory_limit_bytes ?? Math.max(1, ...memory) * 1.5} />
        </figure>
        <figure><figcaption>{texts.usage.disk}</figcaption><b>{orNone(last?.disk_bytes, bytes)}</b></figure>
        <figure><figcaption>{texts.usage.pids}</figcaption><b>{orNone(last?.pids, String)}</b></figure>
      </div>
      {!isRunning && <p class="dim">{texts.usage.resting}</p>}
    </section>
  );
}
