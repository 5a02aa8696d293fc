/** A microagent of a conversation's repository, as it was when the conversation began. */
export interface ConversationMicroagent {
  /** Relative to the repository's root. */
  readonly path: string;
  readonly blobId: string;
  /** The words that activate it. Without any, it always applies. */
  readonly triggers: readonly string[];
  /** True once the agent's session has got it, or it was left out. */
  readonly isSettled: boolean;
}

/** Why the agent does not get a microagent. */
export const omissionReasons = ['too_many', 'too_large', 'not_readable', 'front_matter'] as const;

export interface LeftOutMicroagent {
  readonly path: string;
  readonly why: (typeof omissionReasons)[number];
}

/** How many microagents of a repository are read for a conversation. Each may cost a request to the git host. */
export const maxMicroagents = 32;
/** The maximum size of the texts that the agent gets with one message, in bytes. */
export const maxContextBytes = 65_536;
/** The maximum total length of one microagent's triggers. They are part of the conversation's record. */
export const maxTriggerCharacters = 1000;
/** The maximum number of left out microagents that one event names. */
const maxReportedLeftOut = 100;

export interface ApplicableMicroagent {
  readonly microagent: ConversationMicroagent;
  /** The trigger that the message mentions. Null: it always applies. */
  readonly trigger: string | null;
}

/** Returns the microagents that apply to the message and were not settled before. Those that always apply come first. */
export function applicableMicroagents(microagents: readonly ConversationMicroagent[], text: string): readonly ApplicableMicroagent[] {
  const unsettled = microagents.filter(({ isSettled }) => !isSettled);
  const words = normalized(text);
  const always = unsettled.filter(({ triggers }) => triggers.length === 0).map((microagent) => ({ microagent, trigger: null }));
  const called = unsettled.flatMap((microagent) => {
    const trigger = microagent.triggers.find((each) => mentions(words, normalized(each)));
    return trigger === undefined ? [] : [{ microagent, trigger }];
  });
  return [...always, ...called];
}

/** Letters of scripts that write no spaces between words. */
const unspaced = String.raw`[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]`;
const inWord = String.raw`[[\p{L}\p{N}_]--${unspaced}]`;
const [beginsUnspaced, endsUnspaced] = [new RegExp(`^${unspaced}`, 'v'), new RegExp(`${unspaced}$`, 'v')];
const [beginsInWord, endsInWord] = [new RegExp(`^${inWord}`, 'v'), new RegExp(`${inWord}$`, 'v')];

/** Returns a form in which equal texts are equal: in lower case, with one space for all white space between words. */
function normalized(text: string): string {
  return text.normalize().toLowerCase().replaceAll(/\s+/gu, ' ').trim();
}

/** Returns true if the text contains the trigger as whole words. Both are normalized. Takes linear time, unlike a regular expression. */
function mentions(text: string, trigger: string): boolean {
  if (trigger === '') return false;
  const [canBegin, canEnd] = [beginsUnspaced.test(trigger), endsUnspaced.test(trigger)];
  for (let at = text.indexOf(trigger); at >= 0; at = text.indexOf(trigger, at + 1)) {
    const end = at + trigger.length;
    // A character has one or two code units.
    const begins = canBegin || !endsInWord.test(text.slice(Math.max(0, at - 2), at));
    if (begins && (canEnd || !beginsInWord.test(text.slice(end, end + 2)))) return true;
  }
  return false;
}

/** What became of a microagent. */
export type MicroagentResult<T> =
  | { readonly kind: 'read'; readonly value: T }
  | { readonly kind: 'left_out'; readonly leftOut: LeftOutMicroagent };

export function partition<T>(results: readonly MicroagentResult<T>[]) {
  return {
    read: results.flatMap((result) => (result.kind === 'read' ? [result.value] : [])),
    leftOut: results.flatMap((result) => (result.kind === 'left_out' ? [result.leftOut] : [])),
  };
}

export interface MicroagentText extends ApplicableMicroagent {
  readonly content: string;
}

/** Chooses the microagents that fit into one message, in the given order. */
export function fitIntoContext(read: readonly MicroagentText[]) {
  let left = maxContextBytes;
  const given: MicroagentText[] = [];
  const tooLarge: LeftOutMicroagent[] = [];
  for (const text of read) {
    const size = new TextEncoder().encode(text.content).length;
    if (size > left) tooLarge.push({ path: text.microagent.path, why: 'too_large' });
    else {
      left -= size;
      given.push(text);
    }
  }
  return { given, tooLarge };
}

/** The data of the event that reports which microagents the agent gets. */
export interface MicroagentsEventData {
  /** The microagents that the agent gets with the next message. */
  readonly given: readonly { readonly path: string; readonly trigger: string | null }[];
  /** The first microagents that are left out. `leftOutCount` counts all of them. */
  readonly leftOut: readonly LeftOutMicroagent[];
  readonly leftOutCount: number;
}

export function microagentsEventData(given: readonly ApplicableMicroagent[], leftOut: readonly LeftOutMicroagent[]): MicroagentsEventData {
  return {
    given: given.map(({ microagent: { path }, trigger }) => ({ path, trigger })),
    leftOut: leftOut.slice(0, maxReportedLeftOut),
    leftOutCount: leftOut.length,
  };
}
