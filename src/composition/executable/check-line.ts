/** The result of a check. `note`: nothing is wrong, but a person should know. */
export interface Line {
  readonly state: 'ok' | 'note' | 'not ok';
  readonly text: string;
}

export const ok = (text: string): Line => ({ state: 'ok', text });
export const note = (text: string): Line => ({ state: 'note', text });
export const notOk = (text: string): Line => ({ state: 'not ok', text });

const marks: Readonly<Record<Line['state'], string>> = { ok: 'ok     ', note: 'note   ', 'not ok': 'NOT OK ' };

export function printed({ state, text }: Line): string {
  return `  ${marks[state]} ${text}\n`;
}
