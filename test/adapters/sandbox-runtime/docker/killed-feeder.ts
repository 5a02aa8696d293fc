// Started by `executions.test.ts`, which kills it: reopens an execution, and writes input that the command does not read yet.
import { createDockerRuntime } from '../../../../src/adapters/sandbox-runtime/docker/index.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';

const [, , deployment = '', id = '', executionId = '', whole = ''] = process.argv;
const runtime = createDockerRuntime({ deployment, firewall: false });
const { stdin, handedOver } = await runtime.executions.reopen(id, executionId, 0, neverAborts);
await stdin.getWriter().write(Buffer.from(whole.slice(handedOver.bytes)));
