import { stripVTControlCharacters } from 'node:util';

// Line feeds and tabs stay. Marks that turn the direction of what follows around could make it read as something else.
// oxlint-disable-next-line no-control-regex -- they are what has to go
const steering = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Text of others as it may be put on a terminal: without what would steer it. */
export function harmless(text: string): string {
  return stripVTControlCharacters(text).replaceAll(steering, '');
}

/** The same on one line, so that it can't pass for lines of its reader's own. */
export function harmlessLine(text: string): string {
  return harmless(text.replaceAll(/\s+/g, ' ')).trim();
}
