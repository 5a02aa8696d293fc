import stringWidth from 'string-width';
import type { api } from '../../client/index.ts';
import { safeLine } from './safe-text.ts';

export function conversationTable(items: readonly api.AppConversation[]): string {
  const rows = items.map(({ id, archived_at, start_status, execution_status, selected_repository, title, status_detail, ...item }) => {
    const current = start_status === 'READY' ? (execution_status ?? 'no agent') : start_status;
    const isArchived = archived_at !== null;
    const sandbox = isArchived && item.sandbox_status === 'MISSING' ? '-' : item.sandbox_status;
    const failed = start_status === 'ERROR' || execution_status === 'error' || item.status_reason?.code === 'changes_not_kept';
    const state = isArchived ? 'archived' : current;
    return [id, state, sandbox, selected_repository ?? '-', title ?? '-', failed ? (status_detail ?? '-') : '-'];
  });
  return table(['ID', 'STATE', 'SANDBOX', 'REPOSITORY', 'TITLE', 'ERROR'], rows);
}

export function sandboxTable(items: readonly api.Sandbox[]): string {
  const rows = items.map(({ id, status, pause_kind, sandbox_spec_id, last_active_at, status_detail }) => {
    const [detail, error] = ['ERROR', 'MISSING'].includes(status) ? [null, status_detail] : [status_detail, null];
    const shown = pause_kind === null ? status : `${status} (${pause_kind})`;
    return [id, shown, sandbox_spec_id, last_active_at, detail ?? '-', error ?? '-'];
  });
  return table(['ID', 'STATUS', 'SPEC', 'ACTIVE', 'DETAIL', 'ERROR'], rows);
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return columns([head, ...rows]);
}

/** Returns all members of a record, with their names in the API. Of a reason, only the code; the key of a sandbox is left to `--json`. */
export function recordText(record: object): string {
  const rows = Object.entries(record).flatMap(([name, value]: [string, unknown]) => {
    const isKey = name === 'session_api_key' && value !== null;
    const isReason = name.endsWith('_reason') && typeof value === 'object' && value !== null && 'code' in value;
    const shown = isReason ? value.code : value;
    return (isKey ? ['(printed with --json)'] : valueLines(shown)).map((line, index) => [index === 0 ? name : '', line]);
  });
  return columns(rows);
}

/** Returns a line for each item of a list or member of a mapping, otherwise one. */
function valueLines(value: unknown): readonly string[] {
  if (value === null || value === undefined) return ['-'];
  if (typeof value !== 'object') return [typeof value === 'string' ? value : JSON.stringify(value)];
  const lines = Array.isArray(value)
    ? value.map((item) => valueLines(item).join(' '))
    : Object.entries(value).map(([name, each]) => `${name}=${String(each)}`);
  return lines.length === 0 ? ['-'] : lines;
}

function columns(rows: readonly (readonly string[])[]): string {
  const all = rows.map((row) => row.map(safeLine));
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => stringWidth(row[column] ?? '')))) ?? [];
  const padded = (cell: string, column: number): string => cell + ' '.repeat((widths[column] ?? 0) - stringWidth(cell));
  return all.map((row) => `${row.map(padded).join('  ').trimEnd()}\n`).join('');
}
