import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { navigate } from '../route.ts';
import { currentSession } from '../session.ts';
import { defaultSpecLabel } from '../specs.ts';
import { Field, Input, Select } from '../ui/controls.tsx';
import { FormDialog } from '../ui/dialog.tsx';

interface StartSandboxProps {
  /** The spec that is chosen first; empty for the default. */
  readonly spec: string;
  readonly specs: readonly api.SandboxSpec[];
  readonly onClose: () => void;
}

export function StartSandbox({ spec: chosen, specs, onClose }: StartSandboxProps) {
  const [spec, setSpec] = useState(chosen);
  const [env, setEnv] = useState('');
  const [metadata, setMetadata] = useState('');
  const [minutes, setMinutes] = useState('');
  const start = async () => {
    const sandbox = await currentSession().client.sandboxes.start({
      spec: spec || undefined, env: pairsOf(env), metadata: pairsOf(metadata),
      timeout_seconds: minutes === '' ? undefined : Math.round(Number(minutes) * 60),
    });
    setTimeout(() => navigate(['sandboxes', sandbox.id]));
  };
  return (
    <FormDialog title="Start a sandbox" submit="Start" onClose={onClose} onSubmit={start}>
      <Field label="Spec" hint={specs.find(({ id }) => id === spec)?.description ?? undefined}>
        <Select value={spec} onChange={setSpec}
          options={[['', defaultSpecLabel(specs)], ...specs.map(({ id }) => [id, id] as const)]} />
      </Field>
      <Field label="Variables" hint="One per line. They are never shown again.">
        <textarea rows={2} class="mono" spellcheck={false} value={env} placeholder="NAME=value"
          onInput={(event) => setEnv(event.currentTarget.value)} />
      </Field>
      <Field label="Metadata" hint="Labels to find it by, one per line.">
        <textarea rows={2} class="mono" spellcheck={false} value={metadata} placeholder="task=42"
          onInput={(event) => setMetadata(event.currentTarget.value)} />
      </Field>
      <Field label="Lifetime in minutes" hint="Then it is deleted, even if it is in use. Empty: the maximum of the spec.">
        <Input type="number" min={1} value={minutes} onInput={setMinutes} />
      </Field>
    </FormDialog>
  );
}

/** Throws if a line has another form. */
function pairsOf(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(lines.map((line) => {
    const [, name, value = ''] = /^\s*([^=\s]+)\s*=(.*)$/.exec(line) ?? [];
    if (name === undefined) throw new Error(`The lines have the form NAME=value, but one is: ${line}`);
    return [name, value.trim()];
  }));
}
