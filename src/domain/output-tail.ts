import { plainText } from './plain-text.ts';

/** Returns the end of a text: at most `maxBytes` bytes of whole characters, without terminal control sequences. */
export function outputTail(content: Uint8Array, maxBytes: number): string {
  const start = Math.max(0, content.length - maxBytes);
  const end = new TextDecoder().decode(content.subarray(start));
  const text = start === 0 ? end : end.replace(/^\uFFFD{1,3}/, '');
  return plainText(text).replaceAll('\r', '').trim();
}
