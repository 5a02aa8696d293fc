import { useState } from 'preact/hooks';
import { useDebounced, useResource } from '../live.ts';
import { navigate } from '../route.ts';
import { currentSession } from '../session.ts';
import { useSpecs } from '../specs.ts';
import { texts } from '../texts.ts';
import { Field, Select } from '../ui/controls.tsx';
import { FormDialog } from '../ui/dialog.tsx';
import { RepositoryInput } from '../ui/repository-input.tsx';

const policies = ['', 'ask', 'allow', 'deny'] as const;

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
      permission_policy: policies.find((one) => one === policy) || null,
      ...(message.trim() !== '' && {
        title: message.trim().split('\n', 1)[0]?.slice(0, 80), initial_message: { content: [{ type: 'text', text: message }] },
      }),
    });
    // Waits until the dialog has left its address, so the history does not contain it.
    setTimeout(() => navigate(['conversations', conversation.id]));
  };
  const specItems = specs.data ?? [];
  return (
    <FormDialog title={texts.newConversation.title} submit={texts.newConversation.start} onClose={onClose} onSubmit={start} class="large">
      <Field label={texts.newConversation.message}>
        <textarea rows={4} autofocus value={message} placeholder={texts.newConversation.messageHint}
          onInput={(event) => setMessage(event.currentTarget.value)} />
      </Field>
      <div class="pair">
        <Field label={texts.newConversation.repository} hint={branches.error?.message}>
          <RepositoryInput value={repository} onInput={setRepository} />
        </Field>
        <Field label={texts.newConversation.branch}>
          <Select label={texts.newConversation.branch} value={branch} onChange={setBranch}
            options={[['', texts.newConversation.defaultBranch], ...(branches.data ?? []).map(({ name }) => [name, name] as const)]} />
        </Field>
      </div>
      <div class="pair">
        <Field label={texts.newConversation.spec}>
          <Select label={texts.newConversation.spec} value={spec} onChange={setSpec}
            options={[['', texts.newConversation.defaultSpec(specItems[0]?.id)], ...specItems.map(({ id }) => [id, id] as const)]} />
        </Field>
        <Field label={texts.newConversation.policy}>
          <Select label={texts.newConversation.policy} value={policy} onChange={setPolicy}
            options={policies.map((one) => [one, texts.newConversation.policies[one]])} />
        </Field>
      </div>
    </FormDialog>
  );
}
