import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { navigate } from '../route.ts';
import { currentSession } from '../session.ts';
import { defaultSpecLabel } from '../specs.ts';
import { Field, Input, Select } from '../ui/controls.tsx';
import { FormDialog } from '../ui/dialog.tsx';

interface StartSandboxProps {
  readonly spec: string;
  readonly specs: readonly api.SandboxSpec[];
  readonly onClose: () => void;
}

export function StartSandbox({ spec: chosen, specs, onClose }: StartSandboxProps) {
  const [spec, setSpec] = useState(specs.some(({ id }) => id === chosen) ? chosen : '');
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
        <Select label="Spec" value={spec} onChange={setSpec}
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
        <Input value={minutes} onInput={setMinutes} />
      </Field>
    </FormDialog>
  );
}

function pairsOf(text: string): Record<string, string> | undefined {
  const pairs = [...text.matchAll(/^\s*([^=\s]+)\s*=(.*)$/gm)].map(([, name, value]) => [name, value?.trim()]);
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}
