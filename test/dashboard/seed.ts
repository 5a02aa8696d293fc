import type { Conversation, Sandbox, SkepClient } from '../../src/client/index.ts';
import type { AcpStep } from '../doubles/acp-agent/steps.ts';

const answer = `The total ignores how many of each item there are. I changed two things:

- \`total\` multiplies the price by the count
- a test covers an item with a count of **3**

\`\`\`ts
for (const { price, count } of items) sum += price * count;
\`\`\`

Shall I open a pull request?`;

const plan = (done: number): AcpStep => ({
  plan: ['Read the cart', 'Find the wrong total', 'Mend it', 'Add a test'].map((content, index) => ({
    content, priority: 'medium' as const, status: index < done ? 'completed' as const : index === done ? 'in_progress' as const : 'pending' as const,
  })),
});

const options = [
  { optionId: 'once', name: 'Allow once', kind: 'allow_once' as const },
  { optionId: 'always', name: 'Always allow', kind: 'allow_always' as const },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' as const },
];

const fixed = `export interface Item { price: number; count: number }

export function total(items: Item[]): number {
  let sum = 0;
  for (const { price, count } of items) sum += price * count;
  return sum;
}
`;

const work: AcpStep[] = [
  plan(0),
  { say: 'The user says that the total is wrong. I should read the cart first.', channel: 'thought' },
  { tool: { toolCallId: 'read-1', title: 'Read src/cart.ts', toolKind: 'read', status: 'completed', paths: ['src/cart.ts'], content: [{ type: 'text', text: fixed }] } },
  plan(2),
  { write: { path: 'src/cart.ts', text: fixed } },
  { run: 'mkdir -p test' },
  { write: { path: 'test/cart.test.ts', text: `import { expect, test } from 'vitest';\n\ntest('counts', () => {\n  expect(2 + 1).toBe(3);\n});\n` } },
  { run: 'git add -A && git -c user.name=Agent -c user.email=agent@example.com commit --quiet --message "Mend the total of the cart"' },
  { tool: { toolCallId: 'run-1', title: 'npm test', toolKind: 'execute', status: 'failed', content: [{ type: 'text', text: 'sh: 1: npm: not found' }] } },
  { usage: { usedTokens: 48_200, contextTokens: 200_000, cost: { amount: 0.34, currency: 'USD' } } },
  plan(4),
  { say: answer },
];

const wrong = 'The total of the cart is wrong when somebody buys more than one of something. Please mend it, and add a test.';
const push = 'Yes, push it to a branch.';

/** What the agent does for each message. */
export const scripts: Readonly<Record<string, readonly AcpStep[]>> = {
  [wrong]: work,
  [push]: [{ ask: { toolCallId: 'push', title: 'git push origin skep/cart-total', options } }, { say: 'It is pushed.' }],
};

export interface Seeded {
  readonly conversation: Conversation;
  readonly sandbox: Sandbox;
}

/** Creates an example of everything that the pages show. */
export async function seed(client: SkepClient): Promise<Seeded> {
  const conversation = await client.conversations.start({ title: 'The total of the cart is wrong', selected_repository: 'acme/shop' });
  for await (const event of conversation.turn(wrong)) void event;
  await conversation.send(push);
  const others = ['Upgrade the payment library', 'Write the release notes of 2.4', 'Why is checkout slow on phones?'];
  for (const title of others) {
    const { id } = await client.conversations.start({ title, selected_repository: 'acme/shop' });
    if (title === others[1]) await client.request('PATCH /api/v1/app-conversations/{id}', { path: { id }, body: { archived: true } });
  }
  const sandbox = await client.sandboxes.start({ spec: 'web', metadata: { task: '42', team: 'checkout' }, waitUntil: 'running' });
  await sandbox.files.write('/workspace/server.py', 'import http.server\n\nhttp.server.test(port=8000)\n');
  await sandbox.files.write('/workspace/static/index.html', '<h1>Tea</h1>\n');
  await (await client.sandboxes.start({ spec: 'web', waitUntil: 'running' })).pause('stop');
  await client.sandboxes.start({ spec: 'broken', waitUntil: 'running' }).catch(() => {});
  for await (const event of conversation.events()) if (event.kind === 'permission_requested') break;
  return { conversation, sandbox };
}
