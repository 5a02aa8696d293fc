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

export interface OmittedMicroagent {
  readonly path: string;
  readonly why: (typeof omissionReasons)[number];
}

/** How many microagents of a repository are read for a conversation. Each may cost a request to the git host. */
export const maxMicroagents = 32;
/** The maximum size of the texts that the agent gets with one message, in bytes. */
export const maxContextBytes = 65_536;
/** The maximum total length of one microagent's triggers. They are part of the conversation's record. */
export const maxTriggerCharacters = 1000;
/** The maximum number of omitted microagents that one event names. */
const maxReportedOmissions = 100;

export interface AppliedMicroagent {
  readonly microagent: ConversationMicroagent;
  /** The trigger that the message mentions. Null: it always applies. */
  readonly trigger: string | null;
}

/** Returns the microagents that apply to the message and were not settled before. Those that always apply come first. */
export function applicableMicroagents(microagents: readonly ConversationMicroagent[], text: string): readonly AppliedMicroagent[] {
  const open = microagents.filter(({ isSettled }) => !isSettled);
  const always = open.filter(({ triggers }) => triggers.length === 0).map((microagent) => ({ microagent, trigger: null }));
  const called = open.flatMap((microagent) => {
    const trigger = microagent.triggers.find((each) => mentions(text, each));
    return trigger === undefined ? [] : [{ microagent, trigger }];
  });
  return [...always, ...called];
}

/** Letters of scripts that write no spaces between words. */
const unspaced = ['Han', 'Hira', 'Kana', 'Thai', 'Laoo', 'Khmr', 'Mymr'].map((script) => String.raw`\p{scx=${script}}`).join('');
const inWord = String.raw`[[\p{L}\p{N}_]--[${unspaced}]]`;
const wordBegins = `(?:(?=[${unspaced}])|(?<!${inWord}))`;
const wordEnds = `(?:(?<=[${unspaced}])|(?!${inWord}))`;

/** Returns true if the text contains the trigger as whole words, in upper or lower case. */
function mentions(text: string, trigger: string): boolean {
  const words = trigger.normalize().split(/\s+/u).filter((word) => word !== '').map((word) => RegExp.escape(word));
  if (words.length === 0) return false;
  return new RegExp(wordBegins + words.join(String.raw`\s+`) + wordEnds, 'iv').test(text.normalize());
}

export interface MicroagentText extends AppliedMicroagent {
  readonly content: string;
}

/** Chooses the microagents that fit into one message, in the given order. */
export function fitIntoContext(read: readonly MicroagentText[]) {
  let left = maxContextBytes;
  const given: MicroagentText[] = [];
  const tooLarge: OmittedMicroagent[] = [];
  for (const one of read) {
    const size = new TextEncoder().encode(one.content).length;
    if (size > left) tooLarge.push({ path: one.microagent.path, why: 'too_large' });
    else {
      left -= size;
      given.push(one);
    }
  }
  return { given, tooLarge };
}

/** The data of the event that reports which microagents the agent gets. */
export interface MicroagentsEventData {
  /** The microagents that the agent gets with the next message. */
  readonly given: readonly { readonly path: string; readonly trigger: string | null }[];
  /** The first ones of those that the agent does not get. */
  readonly leftOut: readonly OmittedMicroagent[];
  /** The number of all that the agent does not get. */
  readonly leftOutCount: number;
}

export function microagentsEventData(given: readonly AppliedMicroagent[], leftOut: readonly OmittedMicroagent[]): MicroagentsEventData {
  return {
    given: given.map(({ microagent: { path }, trigger }) => ({ path, trigger })),
    leftOut: leftOut.slice(0, maxReportedOmissions),
    leftOutCount: leftOut.length,
  };
}
