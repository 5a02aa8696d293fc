import { Sandbox } from 'e2b';

const [part, sandboxId = '', pid = ''] = process.argv.slice(2);
if (part !== 'follow') throw new Error(`there is no part ${part}`);
const sandbox = await Sandbox.connect(sandboxId);
const { exitCode, stdout } = await (await sandbox.commands.connect(Number(pid))).wait();
process.stdout.write(JSON.stringify({ exitCode, stdout }));
