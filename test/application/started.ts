import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { codeOf } from './code-of.ts';
import { calm, createWorld } from './world.ts';

const spec = sandboxSpec({ id: 'pulled', image: 'node:26', secrets: ['MODEL_KEY'], ports: [{ name: 'HTTP', port: 80 }], ready: { probe: { kind: 'tcp', port: 80 }, withinMs: 10_000 } });

/** A world with one process, which starts `count` sandboxes when the test calls `begin`. */
export async function started(count = 1, owners: readonly string[] = ['me']) {
  const world = createWorld({ specs: [spec], secrets: { MODEL_KEY: 'the-key-of-a-model' } });
  const skep = world.boot();
  const start = async (owner: string) => (await skep.sandboxes.start(owner, { specId: null })).id;
  const ids: string[] = [];
  const begin = async () => {
    for (let index = 0; index < count; index += 1) ids.push(await start(owners[index % owners.length] ?? 'me'));
    await calm();
  };
  const of = async (id: string | undefined) => await world.store.sandboxes.find(id ?? '');
  /** Stops the first sandbox and resumes it, while its program does not become ready. Returns the code of the resume's failure. */
  const resumeUnready = async () => {
    const id = ids[0] ?? '';
    await skep.sandboxes.pause('me', id, 'stop');
    world.engine.close('ready');
    const resumed = codeOf(skep.sandboxes.resume('me', id));
    await calm();
    return { id, resumed };
  };
  return { ...world, ...skep, start, ids, begin, of, resumeUnready };
}
