import { permissionPolicies } from '../../domain/agent.ts';
import { isUnsettled } from '../../domain/conversation-start.ts';
import { type Conversation, conversationStartStatuses, executionStatuses, foldTitle } from '../../domain/conversation.ts';
import { permissionSchema } from '../shared/event-data.ts';
import type { ConversationRow } from './database.ts';
import { jsonReader, PathsColumn, QueueColumn, QueuedMessageColumn } from './json-columns.ts';
import { orNull, rowOf, rowReader, word } from './record-rows.ts';

export function rowOfConversation(conversation: Conversation): ConversationRow {
  return {
    ...rowOf(conversation),
    title_folded: foldTitle(conversation.title ?? ''),
    unsettled: Number(isUnsettled(conversation)),
  };
}

const readQueue = jsonReader(QueueColumn);

export const conversationOf = rowReader<Conversation, ConversationRow>(
  {
    startsSandbox: (flag) => flag === 1,
    queue: (text) => (text === '[]' ? [] : readQueue(text)),
    turn: orNull(jsonReader(QueuedMessageColumn)),
    permission: orNull(jsonReader(permissionSchema)),
    permissionPolicy: word(permissionPolicies),
    microagents: orNull(jsonReader(PathsColumn)),
    startStatus: word(conversationStartStatuses),
    executionStatus: orNull(word(executionStatuses)),
  },
  ['title_folded', 'unsettled'],
);
