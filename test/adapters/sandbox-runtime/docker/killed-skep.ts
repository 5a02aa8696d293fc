// Started by `executions.test.ts`, which kills it: executes a command in a sandbox, and waits.
import { createDockerRuntime } from '../../../../src/adapters/sandbox-runtime/docker/index.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';

const [, , deployment = '', id = '', script = ''] = process.argv;
const runtime = createDockerRuntime({ deployment, firewall: false });
const { stdout } = await runtime.execute(id, { command: ['sh', '-c', script] }, neverAborts);
for await (const chunk of stdout) process.stdout.write(chunk);
