import { useEffect, useState } from 'preact/hooks';
import type { api, Sandbox } from '../../client/index.ts';
import { useResource } from '../live.ts';
import { bytes, orNone } from '../format.ts';
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
  const memoryLimit = last?.memory_limit_bytes;
  if (error !== null && last === undefined) {
    return (
      <section class="card"><h2>Usage</h2><p class="dim">{error.message}</p></section>
    );
  }
  const cpu = samples.flatMap(({ cpu_percent: percent }) => percent ?? []);
  const memory = samples.flatMap(({ memory_bytes: used }) => used ?? []);
  return (
    <section class="card usage">
      <h2>Usage</h2>
      <div class="numbers">
        <figure>
          <figcaption>CPU</figcaption><b>{orNone(last?.cpu_percent, (value) => `${value.toFixed(0)} %`)}</b>
          <Sparkline label="CPU" values={cpu} length={samplesShown} max={Math.max(100, ...cpu)} />
        </figure>
        <figure>
          <figcaption>Memory{memoryLimit && `, limit ${bytes(memoryLimit)}`}</figcaption><b>{orNone(last?.memory_bytes, bytes)}</b>
          <Sparkline label="Memory" values={memory} length={samplesShown} max={memoryLimit ?? Math.max(1, ...memory) * 1.5} />
        </figure>
        <figure><figcaption>Disk</figcaption><b>{orNone(last?.disk_bytes, bytes)}</b></figure>
        <figure><figcaption>Processes</figcaption><b>{orNone(last?.pids, String)}</b></figure>
      </div>
      {!isRunning && <p class="dim">It does not run, so it uses no CPU time.</p>}
    </section>
  );
}
