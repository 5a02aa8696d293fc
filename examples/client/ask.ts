// Lets an agent work on a repository and prints its answer: node ask.ts owner/name 'Why is the build red?'
import { createClient } from 'skep/client';

const [repository, question = 'What is in this repository?'] = process.argv.slice(2);
const skep = createClient({ url: process.env['SKEP_PUBLIC_URL'] ?? 'http://127.0.0.1:3000', key: process.env['SKEP_API_KEY'] });
await using conversation = await skep.conversations.start({ selected_repository: repository, permission_policy: 'allow' });
console.log(await conversation.ask(question));
