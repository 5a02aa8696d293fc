// Starts a sandbox, works in it, and deletes it: node sandbox.ts
import { createClient, isFailure } from 'skep/client';

const skep = createClient({ url: process.env['SKEP_PUBLIC_URL'] ?? 'http://127.0.0.1:3000', key: process.env['SKEP_API_KEY'] });
try {
  await using sandbox = await skep.sandboxes.start({ metadata: { task: '42' }, waitUntil: 'running' });
  await sandbox.files.write('/workspace/hello.txt', 'hello\n');
  const { exit_code, stdout } = await sandbox.run('wc -c hello.txt', { timeout_seconds: 60 });
  console.log(exit_code, stdout.trim());

  const server = await sandbox.executions.start(['sh', '-c', 'for i in 1 2 3; do echo "line $i"; done']);
  for await (const bytes of server.output()) process.stdout.write(bytes);
  console.log(server.state.status, await (await sandbox.files.read('/workspace/hello.txt')).text());
} catch (error) {
  // The code of a failure determines the type of its context.
  if (!isFailure(error, 'sandbox_limit_reached')) throw error;
  console.log(`Only ${error.context.max} sandboxes may run. Try again in ${error.context.retry_after_seconds} s.`);
}
