// oxlint-disable-next-line no-control-regex -- the code removes them
const controlSequences = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[ -/]*[0-Z\\^-~])/g;

/** Returns the end of a text: at most `maxBytes` bytes of whole characters, without terminal control sequences. */
export function outputTail(content: Uint8Array, maxBytes: number): string {
  const start = Math.max(0, content.length - maxBytes);
  const end = new TextDecoder().decode(content.subarray(start));
  const text = start === 0 ? end : end.replace(/^\uFFFD{1,3}/, '');
  // oxlint-disable-next-line no-control-regex -- the code removes them
  return text.replaceAll(controlSequences, '').replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '').trim();
}
