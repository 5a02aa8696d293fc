/** Quotes the text as one word for a shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A function of shell scripts: succeeds if the environment of process `$1` contains the text `$2`. */
export const hasText = `
has_text() {
  { while read -r line || [ -n "$line" ]; do
    case $line in *"$2"*) return 0;; esac
  done <"/proc/$1/environ"; } 2>/dev/null
  return 1
}
`;
