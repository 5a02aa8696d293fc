import type { StoreRefused, StoreWarning } from '../adapters/store/sqlite/index.ts';
import { commandName } from '../client/command-name.ts';

export function storeWarningText({ code, dataDir }: StoreWarning): string {
  if (code === 'upgrading') {
    return `The store in the data folder ${dataDir} is of an older version and is upgraded first. For many gigabytes that can `
      + 'take minutes.';
  }
  if (code === 'store_lost') {
    return `skep.db in the data folder ${dataDir} is gone, but deployment.json is there, so a server has used it. The start creates `
      + 'an empty store. It has no keys, and the sandboxes go into quarantine, after which they are deleted. If you have a backup, stop '
      + `the server and restore it first: ${commandName} restore <file>`;
  }
  return `skep.db in the data folder ${dataDir} was not closed, and its write-ahead log skep.db-wal is gone. Unless another program `
    + '(sqlite3) merged it, the last changes are lost. If you have a newer copy, stop the server and restore it: '
    + `${commandName} restore <file>`;
}

export function storeCreatedText(dataDir: string): string {
  return `There was no store in the data folder ${dataDir}, so a new one was created. A server with another data folder does not know its `
    + "keys: set SKEP_DATA_DIR to the server's folder, and run the command as the server's user.";
}

export function storeRefusalText({ message, database }: Pick<StoreRefused, 'message' | 'database'>): string {
  if (database === null) return message;
  return [
    message,
    `To accept the loss: ${commandName} restore ${database}`,
    `To copy the store of a running server: ${commandName} backup <file>`,
  ].join('\n');
}
