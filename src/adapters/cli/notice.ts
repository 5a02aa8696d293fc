/** Tells the person at the terminal something that is no output of the command. */
export function notice(text: string): void {
  process.stderr.write(`${text}\n`);
}
