import { useState } from 'preact/hooks';
import { useDebounced, useResource } from '../live.ts';
import { navigate } from '../route.ts';
import { currentSession } from '../session.ts';
import { defaultSpecLabel, useSpecs } from '../specs.ts';
import { Field, Select } from '../ui/controls.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { RepositoryInput } from '../ui/repository-input.tsx';

const policies = [['', 'As the spec says'], ['ask', 'Ask me'], ['allow', 'Allow it'], ['deny', 'Refuse it']] as const;

interface NewConversationProps {
  /** The repository that is chosen first. */
  readonly repository: string;
  readonly onClose: () => void;
}

export function NewConversation({ repository: chosen, onClose }: NewConversationProps) {
  const { client } = currentSession();
  const [repository, setRepository] = useState(chosen);
  const [branch, setBranch] = useState('');
  const [spec, setSpec] = useState('');
  const [policy, setPolicy] = useState('');
  const [message, setMessage] = useState('');
  const settled = useDebounced(repository);
  const branches = useResource(async (signal) => {
    if (settled === '') return [];
    const input = { path: { repository_name: settled }, query: { limit: 100 }, signal };
    return (await client.request('GET /api/v1/repositories/{repository_name}/branches', input)).items;
  }, [settled]);
  const specs = useSpecs();
  const start = async () => {
    const conversation = await client.conversations.start({
      ...(repository !== '' && { selected_repository: repository }),
      ...(branch !== '' && { selected_branch: branch }),
      ...(spec !== '' && { sandbox_spec_id: spec }),
      permission_policy: policies.find(([one]) => one === policy)?.[0] || null,
      ...(message.trim() !== '' && {
        title: message.trim().split('\n', 1)[0]?.slice(0, 80), initial_message: { content: [{ type: 'text', text: message }] },
      }),
    });
    // Waits until the dialog has left its address, so the history does not contain it.
    setTimeout(() => navigate(['conversations', conversation.id]));
  };
  const specItems = specs.data ?? [];
  return (
    <FormDialog title="New conversation" submit="Start" onClose={onClose} onSubmit={start} class="large">
      <Field label="What should the agent do?">
        <textarea rows={4} autofocus value={message} placeholder="Fix the failing test in src/checkout …"
          onInput={(event) => setMessage(event.currentTarget.value)} />
      </Field>
      <div class="pair">
        <Field label="Repository" hint={branches.error?.message}>
          <RepositoryInput value={repository} onInput={setRepository} />
        </Field>
        <Field label="Branch">
          <Select value={branch} onChange={setBranch}
            options={[['', 'Default branch'], ...(branches.data ?? []).map(({ name }) => [name, name] as const)]} />
        </Field>
      </div>
      <div class="pair">
        <Field label="Sandbox spec">
          <Select value={spec} onChange={setSpec}
            options={[['', defaultSpecLabel(specItems)], ...specItems.map(({ id }) => [id, id] as const)]} />
        </Field>
        <Field label="When the agent asks for permission">
          <Select value={policy} onChange={setPolicy} options={policies} />
        </Field>
      </div>
    </FormDialog>
  );
}
