// A separate process that opens a data folder. Its arguments say what it does. See processes.ts.
import { explained } from '../../../../src/domain/reason.ts';
import { createSqliteStore } from '../../../../src/adapters/store/sqlite/index.ts';
import { unlimited } from '../../../../src/domain/admission-limits.ts';
import type { Store } from '../../../../src/ports/store.ts';
import { nextVersion, someConversation, someEvent, someMessage, somePooled, someSandbox } from '../../../contracts/records.ts';

const [role = '', dataDir = '', tag = ''] = process.argv.slice(2);

type Role = () => Promise<void>;

const roles: Readonly<Record<string, Role>> = {
  /** Opens the folder as a server and keeps it open. */
  async hold() {
    const store = await createSqliteStore({ dataDir });
    say('open');
    // Without a reference to it, the store would be garbage-collected and its lock released.
    setInterval(() => void store.check(), 1000);
  },

  /** Opens the folder as a server and prints whether that succeeds. */
  async open() {
    // Permissions do not stop root.
    if (tag === 'unprivileged' && process.getuid?.() === 0) {
      process.setegid?.(65534);
      process.seteuid?.(65534);
    }
    const store = await createSqliteStore({ dataDir });
    say('open');
    await store.close();
  },

  /** Opens the folder as a server, writes a record, and ends without closing the store. */
  async leave() {
    const store = await createSqliteStore({ dataDir });
    await store.conversations.insert(someConversation('kept'));
    if (tag === 'error') throw new Error('nobody catches this');
  },

  /** Writes without end, and prints the id of each write that has succeeded. */
  async write() {
    const store = await createSqliteStore({ dataDir });
    for (let n = 0; ; n += 1) {
      const id = `${tag}-${n}`;
      await store.sandboxes.insert(someSandbox(id), unlimited, { ownerId: 'ann', key: id, fingerprint: id });
      await store.sandboxes.replace(nextVersion(someSandbox(id), { status: 'RUNNING' }));
      await store.conversations.insert(someConversation(id), undefined, [someEvent(id, { conversationId: id })]);
      say(id);
      // Lets the event loop write to the pipe.
      if (n % 8 === 0) await new Promise(setImmediate);
    }
  },

  /** Writes until the store fails, and prints the failure. */
  async fill() {
    const store = await createSqliteStore({ dataDir });
    const text = 'x'.repeat(100_000);
    let written = 0;
    try {
      for (; written < 10_000; written += 1) {
        await store.conversations.insert(someConversation(`c${written}`, { queue: [someMessage('m', text)] }));
      }
    } catch (error) {
      const kept = await store.conversations.find(`c${written - 1}`);
      const half = await store.conversations.find(`c${written}`);
      say(JSON.stringify({ error, message: String(error), kept: kept !== null, half: half !== null }));
    }
    await store.close();
  },

  /** Competes with other processes for a limit, the next version of a record and the pool members. Prints how much it got. */
  async race() {
    const store = await createSqliteStore({ dataDir, exclusive: false, busyTimeoutMs: 60_000 });
    say('ready');
    await new Promise((resolve) => process.stdin.once('data', resolve));
    const admitted = await fillRoom(store);
    const replaced = await replaceAll(store);
    const taken = await takeMembers(store);
    say(`${admitted} ${replaced} ${taken}`);
    await store.close();
    process.stdin.destroy();
  },
};

async function fillRoom({ sandboxes }: Store): Promise<number> {
  let admitted = 0;
  for (let n = 0; n < 100; n += 1) {
    const { kind } = await sandboxes.insert(someSandbox(`${tag}-${n}`), { ...unlimited, runningPerOwner: 37 });
    if (kind === 'inserted') admitted += 1;
  }
  return admitted;
}

async function replaceAll({ sandboxes }: Store): Promise<number> {
  let replaced = 0;
  for (let version = 1; version <= 200; ) {
    const outcome = await sandboxes.replace(someSandbox('shared', { ownerId: 'bob', version: version + 1, statusReason: explained(tag) }));
    if (outcome.kind === 'replaced') replaced += 1;
    version = (await sandboxes.find('shared'))?.version ?? Infinity;
  }
  return replaced;
}

/** Claims every member of the pool. The order depends on the tag. */
async function takeMembers({ sandboxes, events }: Store): Promise<number> {
  let taken = 0;
  for (let n = 0; n < 50; n += 1) {
    const member = somePooled(`p${(n + tag.charCodeAt(0) * 7) % 50}`);
    const mine = someSandbox(`${tag}-${member.id}`, { ownerId: 'cyd', instanceId: member.id });
    const told = someEvent(mine.id, { ownerId: 'cyd', conversationId: null, sandboxId: mine.id });
    if ((await sandboxes.claimFromPool(mine, member, unlimited, undefined, [told])).kind === 'inserted') taken += 1;
    await events.append([someEvent(`${tag}-${n}`)]);
  }
  return taken;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

try {
  await roles[role]?.();
} catch (error) {
  say(`failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
