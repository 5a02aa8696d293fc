import { stripVTControlCharacters } from 'node:util';

// What is left of an escape sequence that two chunks shared, and what no reader can see.
// oxlint-disable-next-line no-control-regex -- they are what has to go
const unseen = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/gu;

/** What an agent says, without what would move the cursor or colour the terminal of whoever reads it. */
export function plain(text: string): string {
  return stripVTControlCharacters(text).replace(unseen, '');
}

const maxWords = 2000;

/** The same for words that go into one line for a person. */
export function words(text: string): string {
  const line = plain(text).replace(/\s+/gu, ' ').trim();
  return line.length > maxWords ? `${line.slice(0, maxWords)}...` : line;
}
