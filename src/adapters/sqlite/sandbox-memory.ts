import type { Sandbox } from '../../domain/sandbox.ts';
import { sandboxOf } from './sandbox-row.ts';
import type { SandboxRow } from './tables.ts';

/** What tells a record's content: the same row has the same content in the same generation, but for its last activity. */
interface Mark {
  readonly seq: number;
  readonly generation: number;
  readonly last_active_at: number;
}

/** Remembers the records that were read lately. */
export interface SandboxMemory {
  /** The records of these marks; null unless all of them are remembered. */
  recall(marks: readonly Mark[]): Sandbox[] | null;
  /** The records of these rows. */
  remember(rows: readonly (SandboxRow & { readonly seq: number })[]): Sandbox[];
}

/**
 * To read a record's columns, the spec among them, takes far longer than to find the record, and a client that watches
 * its sandboxes asks for the same ones again and again. The database says with each search what holds now, so nothing
 * remembered is ever out of date, whichever process wrote last.
 */
export function createSandboxMemory(capacity = 1000): SandboxMemory {
  const known = new Map<number, Sandbox>();

  function recallOne({ seq, generation, last_active_at: lastActiveAt }: Mark): Sandbox | null {
    const record = known.get(seq);
    if (record?.generation !== generation) return null;
    if (record.lastActiveAt === lastActiveAt) return record;
    const active = { ...record, lastActiveAt };
    known.set(seq, active);
    return active;
  }

  return {
    recall(marks) {
      const records: Sandbox[] = [];
      for (const mark of marks) {
        const record = recallOne(mark);
        if (record === null) return null;
        records.push(record);
      }
      return records;
    },
    remember(rows) {
      if (known.size + rows.length > capacity) known.clear();
      return rows.map((row) => {
        const record = sandboxOf(row);
        known.set(row.seq, record);
        return record;
      });
    },
  };
}
