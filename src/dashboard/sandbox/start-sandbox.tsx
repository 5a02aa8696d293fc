import { useState } from 'preact/hooks';
import type { api } from '../../client/index.ts';
import { navigate } from '../route.ts';
import { currentSession } from '../session.ts';
import { texts } from '../texts.ts';
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
    <FormDialog title={texts.sandboxes.start} submit={texts.startSandbox.start} onClose={onClose} onSubmit={start}>
      <Field label={texts.sandboxes.spec} hint={specs.find(({ id }) => id === spec)?.description ?? undefined}>
        <Select label={texts.sandboxes.spec} value={spec} onChange={setSpec}
          options={[['', texts.newConversation.defaultSpec(specs[0]?.id)], ...specs.map(({ id }) => [id, id] as const)]} />
      </Field>
      <Field label={texts.startSandbox.env} hint={texts.startSandbox.envHint}>
        <textarea rows={2} class="mono" spellcheck={false} value={env} placeholder="NAME=value"
          onInput={(event) => setEnv(event.currentTarget.value)} />
      </Field>
      <Field label={texts.startSandbox.metadata} hint={texts.startSandbox.metadataHint}>
        <textarea rows={2} class="mono" spellcheck={false} value={metadata} placeholder="task=42"
          onInput={(event) => setMetadata(event.currentTarget.value)} />
      </Field>
      <Field label={texts.startSandbox.life} hint={texts.startSandbox.lifeHint}>
        <Input value={minutes} onInput={setMinutes} />
      </Field>
    </FormDialog>
  );
}

function pairsOf(text: string): Record<string, string> | undefined {
  const pairs = [...text.matchAll(/^\s*([^=\s]+)\s*=(.*)$/gm)].map(([, name, value]) => [name, value?.trim()]);
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}
