import { stripVTControlCharacters } from 'node:util';

// Line feeds and tabs stay. Marks that change the direction of text could make it read as something else.
// oxlint-disable-next-line no-control-regex -- control characters are what is removed
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

// The start of an escape sequence with a text that never ends. With many of them, Node's function takes quadratic time.
// oxlint-disable-next-line no-control-regex -- control characters are what is removed
const endless = /\u001b\](?![^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c))/g;

/** Returns the text without the characters that control a terminal. */
export function safeText(text: string): string {
  return stripVTControlCharacters(text.replaceAll(endless, '')).replaceAll(controls, '');
}

/** Returns the safe text on one line, so it can't imitate other lines of the program. */
export function safeLine(text: string): string {
  return safeText(text.replaceAll(/\s+/g, ' ')).trim();
}
