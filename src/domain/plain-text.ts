// An escape sequence: a text with an end, a command with parameters, or a short one. Takes linear time, because no part runs over a place
// where a sequence can begin. Node's `stripVTControlCharacters` takes quadratic time, so a program could block the server with it.
const escapeSequence =
  // oxlint-disable-next-line no-control-regex -- they are what has to go
  /\u001b[\]PX^_][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b[ -/]*[0-~]/gu;

// The rest of an escape sequence that was split over two chunks, and invisible characters.
// oxlint-disable-next-line no-control-regex -- they are what has to go
const invisible = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/gu;

/** Returns the text without terminal control sequences and invisible characters. Tabs and line ends stay. */
export function plainText(text: string): string {
  return text.replace(escapeSequence, '').replace(invisible, '');
}
