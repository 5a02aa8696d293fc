// Sends a message to an agent, and prints the answer: node ask.ts 'Why is the build red?' owner/name
import { createClient } from 'skep/client';

const [question = 'What is in this repository?', repository] = process.argv.slice(2);
const skep = createClient({ url: process.env['SKEP_PUBLIC_URL'] ?? 'http://127.0.0.1:3000', key: process.env['SKEP_API_KEY'] });
await using conversation = await skep.conversations.start({ selected_repository: repository, permission_policy: 'allow' });
console.log(await conversation.ask(question));
