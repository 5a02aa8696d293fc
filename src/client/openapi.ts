// Made from the OpenAPI document. After a change of the API: npx vitest run test/client/openapi-types.test.ts --update=true

export interface Page<T> {
  readonly items: readonly T[];
  /** Send it as `page_id` to get the next page. Null on the last page. */
  readonly next_page_id: string | null;
}

/** RFC 3339, in UTC. */
export type Timestamp = string;

export interface AppConversationStartRequest extends SandboxStartRequest {
  readonly title?: string | null | undefined;
  /** The sandbox to use, of your own user. Default: a new one. */
  readonly sandbox_id?: string | null | undefined;
  /** The repository to work on, in the form of `repository_name` of the microagents. */
  readonly selected_repository?: string | null | undefined;
  /** A branch of that repository. */
  readonly selected_branch?: string | null | undefined;
  readonly initial_message?: Message | null | undefined;
  /** The answer to the agent's requests for permission: allow them, ask the user, or deny them. Null: the policy of the spec. */
  readonly permission_policy?: PermissionPolicy | null | undefined;
}

export interface ChosenResources {
  readonly cpus?: number | undefined;
  readonly memory_bytes?: number | undefined;
  readonly pids?: number | undefined;
}

export interface Message { readonly content: readonly TextContent[] }
export interface TextContent { readonly type: 'text'; readonly text: string }
export type PermissionPolicy = 'allow' | 'ask' | 'deny';

export interface AppConversationUpdateRequest {
  readonly title?: string | null | undefined;
  /** True archives the conversation. This cannot be undone. */
  readonly archived?: boolean | undefined;
}

export interface TurnCancellation {
  /** Null: the message of the present turn. */
  readonly message_id?: string | null | undefined;
}

export interface PermissionAnswer {
  /** One of the options that the event `permission_requested` offers. */
  readonly option_id: string;
}

export interface PublishRequest {
  /** Any branch but the default branch of the repository. Default: a branch for this conversation only. */
  readonly branch?: string | undefined;
  /** The message of the commit with the uncommitted files. Default: the title of the conversation. */
  readonly commit_message?: string | undefined;
  /** Opens a pull request (in GitLab a merge request), or updates the open one of the branch. */
  readonly pull_request?: PullRequestRequest | undefined;
}

export interface PullRequestRequest {
  readonly title: string;
  /** As Markdown. On GitLab, lines that begin with a slash stay text: they are not executed as quick actions. */
  readonly body?: string | undefined;
  /** The branch to merge into. Default: the default branch for a new pull request; an open one keeps its base. */
  readonly base?: string | undefined;
  /** Whether a new pull request is a draft. An open one does not change. */
  readonly draft?: boolean | undefined;
}

export type EventKind = 'message' | 'message_chunk' | 'tool_call' | 'plan' | 'usage' | 'permission_requested' | 'permission_answered'
  | 'turn_started' | 'turn_ended' | 'work_tree_changed' | 'start_step' | 'setup_script' | 'microagents' | 'execution_changed'
  | 'agent_started' | 'sandbox_moved' | 'conversation_archived' | 'conversation_deleted';

export type SandboxStatus = 'STARTING' | 'RUNNING' | 'PAUSING' | 'PAUSED' | 'RESUMING' | 'ERROR' | 'MISSING';

export interface SandboxStartRequest {
  /** The spec of the new sandbox. Default: the first spec of the deployment. */
  readonly sandbox_spec_id?: string | null | undefined;
  /** Variables for the sandbox's command. They are added to those of the spec, or replace them. No response shows them. */
  readonly env?: Readonly<Record<string, string>> | null | undefined;
  /** Keys and values to find the sandbox by. Visible to everybody who can read the sandbox. */
  readonly metadata?: Readonly<Record<string, string>> | null | undefined;
  /** The sandbox is deleted this long after its creation, even if it is in use. At most `max_life` of the spec, which is the default. */
  readonly timeout_seconds?: number | null | undefined;
  /** The limits of the sandbox. Each is at most the limit of the spec, which is the default. */
  readonly resources?: ChosenResources | null | undefined;
  /** Names of variables of the server's environment that the sandbox's command gets. The spec's `allowed_secrets` must have them. */
  readonly secrets?: readonly string[] | null | undefined;
}

export interface SandboxPauseRequest { readonly pause_kind?: PauseKind | undefined }

/** `freeze` keeps memory and processes; `stop` frees the memory and keeps the files. */
export type PauseKind = 'freeze' | 'stop';

export interface SandboxAdoptRequest {
  /** The new owner. Default: the owner that the runtime knows. */
  readonly user_id?: string | null | undefined;
  /** The spec. Default: the spec that the runtime knows. */
  readonly sandbox_spec_id?: string | null | undefined;
}

export interface PortLinkRequest {
  /** How long the link, and pages opened by it, can be used. */
  readonly expires_in_seconds?: number | undefined;
}

export interface ExecutionRequest {
  /** The program and its arguments. */
  readonly command?: readonly string[] | null | undefined;
  /** A shell command for `/bin/sh -c`, instead of `command`. */
  readonly shell?: string | null | undefined;
  /** Added to the sandbox's own variables, for this command only. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Default: the working directory of the sandbox's spec. */
  readonly working_dir?: string | null | undefined;
  /** After this time the command is killed (SIGKILL), also after a restart of the server. */
  readonly timeout_seconds?: number | null | undefined;
  /** Whether the command gets input. Default: true with a terminal, otherwise false. */
  readonly stdin?: boolean | undefined;
  /** Runs it in a terminal of this size. */
  readonly tty?: TerminalSize | null | undefined;
}

export interface TerminalSize { readonly cols: number; readonly rows: number }

export interface ExecutionSignal {
  readonly signal: 'SIGHUP' | 'SIGINT' | 'SIGQUIT' | 'SIGKILL' | 'SIGUSR1' | 'SIGUSR2' | 'SIGPIPE' | 'SIGALRM' | 'SIGTERM' | 'SIGCONT'
    | 'SIGSTOP' | 'SIGTSTP' | 'SIGWINCH';
}

export interface KeyCreateRequest {
  /** Must be unique among the valid keys. An expired key that has it is revoked. */
  readonly name: string;
  /** The owner of what the key creates. Default: your own user. */
  readonly user_id?: string | undefined;
  readonly access?: KeyAccess | undefined;
  /** Default: all repositories. A key for some repositories only needs a user of its own. */
  readonly repositories?: readonly string[] | null | undefined;
  /** Default: the key does not expire. */
  readonly expires_in_seconds?: number | undefined;
  /** The form of the key. E2B's clients accept only `e2b`. */
  readonly format?: 'skep' | 'e2b' | undefined;
}

/** `full` can read and change everything that its user owns; `read` can only read it; `admin` can read and change everything. */
export type KeyAccess = 'full' | 'read' | 'admin';

export interface LoginRequest {
  /** The part of the login link after `#/login/`. */
  readonly code: string;
}

/** A Markdown file in a repository with instructions for agents. */
export interface MicroagentResponse {
  /** The path below the microagents directory, without the file extension. */
  readonly name: string;
  /** Relative to the repository's root. */
  readonly path: string;
  /** The time of the first commit of the default branch that has the path. RFC 3339, in UTC. */
  readonly created_at: Timestamp;
}

/** The reason, for programs: a code with its data. Any version can add codes, so expect codes that you do not know. */
export interface StatusReason { readonly code: string; readonly [name: string]: unknown }

export interface ValidationError {
  /** The location. The first item is path, query, header or body. */
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  /** The kind of mistake, for programs. Expect kinds that you do not know. */
  readonly type: string;
}

/** A microagent with its content. */
export interface MicroagentContentResponse extends MicroagentResponse {
  /**
   * The text after the front matter, or the whole text if there is no valid front matter. Bytes that are not UTF-8 are replaced by
   * U+FFFD. A byte order mark is removed.
   */
  readonly content: string;
  /** Words in a message that activate it. Empty if the front matter has none. */
  readonly triggers: readonly string[];
  /** The YAML mapping between two `---` lines at the beginning of the file. Null if there is no valid one. */
  readonly front_matter: Readonly<Record<string, unknown>> | null;
  /** What is wrong with the front matter. */
  readonly front_matter_problem: FrontMatterProblem | null;
  readonly git_provider: string;
}

export interface FrontMatterProblem {
  /** The problem, for programs. Any version can add codes. */
  readonly code: string;
  /** What is wrong, as a sentence. */
  readonly detail: string;
  /** The line of the file. Null if the problem has no single line. */
  readonly line: number | null;
}

export interface RepositoryPage {
  readonly items: readonly Repository[];
  /** Send it as `page_id` to get the next page. Null on the last page. */
  readonly next_page_id: string | null;
  /** The git providers that failed. Their repositories are missing on this page. */
  readonly failures: readonly {
    readonly git_provider: string;
    /** The code of the failure, as in an error response. */
    readonly code: string;
    /** The failure, as a sentence. */
    readonly detail: string;
  }[];
}

/** A repository of a git provider. */
export interface Repository {
  /** The name for `selected_repository` of a conversation. */
  readonly name: string;
  /** The path at its git provider. */
  readonly path: string;
  readonly git_provider: string;
}

export interface Branch {
  readonly name: string;
  /** The id of its last commit. */
  readonly commit: string;
  readonly is_default: boolean;
}

/** A conversation with an agent, which runs in a sandbox. */
export interface AppConversation {
  readonly id: string;
  readonly created_by_user_id: string;
  readonly title: string | null;
  readonly sandbox_id: string | null;
  readonly sandbox_status: SandboxStatus;
  readonly sandbox_spec_id: string;
  readonly selected_repository: string | null;
  readonly selected_branch: string | null;
  /** The provider that serves the repository. */
  readonly git_provider: string | null;
  /** The step that its start has reached. */
  readonly start_status: ConversationStartStatus;
  /** What its agent does; null if it has no agent. */
  readonly execution_status: AgentStatus | null;
  /** The reason, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
  /** The pull requests that its publications opened or updated. */
  readonly pull_requests: readonly PublishedPullRequest[];
  readonly created_at: Timestamp;
  readonly updated_at: Timestamp;
  /** When it was archived. After that, nothing runs in it. */
  readonly archived_at: Timestamp | null;
}

export type ConversationStartStatus = 'WORKING' | 'WAITING_FOR_SANDBOX' | 'PREPARING_REPOSITORY' | 'RUNNING_SETUP_SCRIPT'
  | 'LISTING_MICROAGENTS' | 'STARTING_AGENT' | 'READY' | 'ERROR';

export type AgentStatus = 'idle' | 'running' | 'waiting_for_permission' | 'frozen' | 'error';
export interface PublishedPullRequest { readonly branch: string; readonly number: number; readonly url: string }
export interface Transcript { readonly items: readonly TranscriptEntry[] }

/** A message, a tool call, a request for permission, or a turn that did not end normally. */
export type TranscriptEntry = TranscriptMessage | TranscriptPermission | TranscriptToolCall | TranscriptTurnEnd;

export interface TranscriptMessage {
  readonly kind: 'message';
  /** When it was complete. Of a user's message: when the agent got it, or was sent if the agent never got it. */
  readonly at: Timestamp;
  readonly role: 'user' | 'agent';
  /** The user who sent it. Null for a message of the agent, or if it is not known. */
  readonly user_id: string | null;
  readonly text: string;
  /** False for a user's message that the agent has not got: it waits, or was dropped. */
  readonly delivered: boolean;
}

export interface TranscriptPermission {
  readonly kind: 'permission';
  /** When it was answered or withdrawn. Of an open request: when the agent asked. */
  readonly at: Timestamp;
  /** What the agent asked for. */
  readonly title: string;
  /** `open`: the agent waits for the answer. */
  readonly decision: 'allowed' | 'refused' | 'withdrawn' | 'open';
  /** The option that was chosen; null if the request is open or was withdrawn. */
  readonly option_name: string | null;
  /** Who decided; `skep` for a policy or a time limit. Null if the request is open. */
  readonly actor: EventActor | null;
  /** The user who decided. Null if it was no user, or is not known. */
  readonly user_id: string | null;
  /** The reason, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
}

/** A user of the API, the agent, Skep itself, or something that the runtime reported. */
export type EventActor = 'user' | 'agent' | 'skep' | 'runtime';

export interface TranscriptToolCall {
  readonly kind: 'tool_call';
  readonly at: Timestamp;
  readonly title: string;
  readonly tool_kind: string;
  readonly status: 'pending' | 'in_progress' | 'completed' | 'failed';
  readonly paths: readonly string[];
  /** What a call that failed reported. Null if it reported no text, and for other calls. */
  readonly failure: string | null;
}

export interface TranscriptTurnEnd {
  readonly kind: 'turn_ended';
  readonly at: Timestamp;
  readonly stop_reason: 'end_turn' | 'max_tokens' | 'max_turn_requests' | 'refusal' | 'cancelled' | 'failed' | 'interrupted';
  /** The reason, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
}

/** The message is stored, and will be sent to the agent. */
export interface MessageAccepted {
  /** The events of its turn have this id. */
  readonly message_id: string;
}

export interface ConversationChanges {
  /** When the changes were saved, if the sandbox does not run. Null if they were read from the sandbox now. */
  readonly kept_at: Timestamp | null;
  /** The commit that it started from. Null if the repository was empty. */
  readonly start_commit: string | null;
  readonly start_branch: string | null;
  /** The last commit in the sandbox. */
  readonly head_commit: string | null;
  /**
   * False if work is left out: files that git could not read, changes in a git repository inside the work tree, commits of other
   * branches, tags, stashes or work trees, or what may have been done after the changes were saved.
   */
  readonly complete: boolean;
  /** Newest first, at most 1,000. */
  readonly commits: readonly AgentCommit[];
  /** All files that changed since the start, committed or not; sorted by path. */
  readonly files: readonly FileChange[];
  /** The branches that were pushed, each with its last commit. */
  readonly published: readonly Publication[];
}

/** A commit that was made in the conversation. */
export interface AgentCommit {
  readonly commit: string;
  readonly author_name: string;
  readonly author_email: string;
  readonly committed_at: Timestamp;
  readonly subject: string;
}

export interface FileChange {
  readonly path: string;
  readonly status: 'added' | 'modified' | 'deleted' | 'renamed' | 'mode_changed';
  /** The path before a rename. */
  readonly old_path: string | null;
  /** As git has it: 100644, 100755, 120000 (link) or 160000 (submodule). */
  readonly old_mode: string | null;
  /** As git has it: 100644, 100755, 120000 (link) or 160000 (submodule). */
  readonly mode: string | null;
  readonly binary: boolean;
  /** Null if the file is binary. */
  readonly lines_added: number | null;
  /** Null if the file is binary. */
  readonly lines_removed: number | null;
  /** Whether the last commit contains the current content of the file. */
  readonly committed: boolean;
}

/** Where the changes were pushed to. */
export interface Publication {
  readonly branch: string;
  readonly commit: string;
  /** Null if none was requested. */
  readonly pull_request: PullRequest | null;
}

export interface PullRequest { readonly number: number; readonly url: string }

/** Where the changes were pushed to. */
export interface PublishResponse extends Publication {
  /**
   * False if work is left out: files that git could not read, changes in a git repository inside the work tree, commits of other
   * branches, tags, stashes or work trees, or what may have been done after the changes were saved.
   */
  readonly complete: boolean;
}

/** Something that happened. The kind determines the form of the data. */
export type Event = MessageEvent | MessageChunkEvent | ToolCallEvent | PlanEvent | UsageEvent | PermissionRequestedEvent
  | PermissionAnsweredEvent | TurnStartedEvent | TurnEndedEvent | WorkTreeChangedEvent | StartStepEvent | SetupScriptEvent
  | MicroagentsEvent | ExecutionChangedEvent | AgentStartedEvent | SandboxMovedEvent | ConversationArchivedEvent
  | ConversationDeletedEvent;

export interface EventOf<Kind, Data> {
  /** The position in the event log. Later events have greater ids. */
  readonly id: number;
  readonly at: Timestamp;
  readonly conversation_id: string | null;
  readonly sandbox_id: string | null;
  /** The user who owns the conversation or sandbox. */
  readonly owner_id: string;
  /** Who caused the event. */
  readonly actor: EventActor;
  /** The user whose request this is: the owner or an administrator. Null if it is no request, or only a later effect of one. */
  readonly user_id: string | null;
  /** The reason, as a sentence. */
  readonly reason: string | null;
  readonly status_reason: StatusReason | null;
  readonly kind: Kind;
  readonly data: Data;
}

export type MessageEvent = EventOf<'message', MessageEventData>;
export type MessageChunkEvent = EventOf<'message_chunk', MessageChunkEventData>;
export type ToolCallEvent = EventOf<'tool_call', ToolCallEventData>;
export type PlanEvent = EventOf<'plan', PlanEventData>;
export type UsageEvent = EventOf<'usage', UsageEventData>;
export type PermissionRequestedEvent = EventOf<'permission_requested', PermissionRequestedEventData>;
export type PermissionAnsweredEvent = EventOf<'permission_answered', PermissionAnsweredEventData>;
export type TurnStartedEvent = EventOf<'turn_started', TurnStartedEventData>;
export type TurnEndedEvent = EventOf<'turn_ended', TurnEndedEventData>;
export type WorkTreeChangedEvent = EventOf<'work_tree_changed', WorkTreeChangedEventData>;
export type StartStepEvent = EventOf<'start_step', StartStepEventData>;
export type SetupScriptEvent = EventOf<'setup_script', SetupScriptEventData>;
export type MicroagentsEvent = EventOf<'microagents', MicroagentsEventData>;
export type ExecutionChangedEvent = EventOf<'execution_changed', ExecutionChangedEventData>;
export type AgentStartedEvent = EventOf<'agent_started', AgentStartedEventData>;
export type SandboxMovedEvent = EventOf<'sandbox_moved', SandboxMovedEventData>;
export type ConversationArchivedEvent = EventOf<'conversation_archived', ConversationArchivedEventData>;
export type ConversationDeletedEvent = EventOf<'conversation_deleted', ConversationDeletedEventData>;
export interface MessageEventData extends MessageChunkEventData { readonly role: 'user' | 'agent' }

export interface MessageChunkEventData {
  readonly message_id: string;
  /** `thought` shows how the agent came to its answer. */
  readonly channel: 'answer' | 'thought';
  readonly text: string;
}

export interface ToolCallEventData {
  readonly tool_call_id: string;
  readonly title: string;
  readonly tool_kind: string;
  readonly status: 'pending' | 'in_progress' | 'completed' | 'failed';
  readonly paths: readonly string[];
  readonly content: readonly (ToolCallText | ToolCallDiff)[];
}

export interface ToolCallText { readonly type: 'text'; readonly text: string }

export interface ToolCallDiff {
  readonly type: 'diff';
  readonly path: string;
  readonly old_text: string | null;
  readonly new_text: string;
}

export interface PlanEventData {
  readonly entries: readonly ({
    readonly content: string;
    readonly priority: 'high' | 'medium' | 'low';
    readonly status: 'pending' | 'in_progress' | 'completed';
  })[];
}

export interface UsageEventData {
  readonly used_tokens: number;
  readonly context_tokens: number;
  readonly cost: { readonly amount: number; readonly currency: string } | null;
}

export interface PermissionRequestedEventData {
  readonly permission_id: string;
  readonly tool_call_id: string;
  readonly title: string;
  readonly options: readonly ({
    readonly option_id: string;
    readonly name: string;
    readonly kind: 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always';
  })[];
}

export interface PermissionAnsweredEventData { readonly permission_id: string; readonly option_id: string | null }
export interface TurnStartedEventData { readonly message_id: string }

export interface TurnEndedEventData {
  readonly message_id: string;
  readonly stop_reason: 'end_turn' | 'max_tokens' | 'max_turn_requests' | 'refusal' | 'cancelled' | 'failed' | 'interrupted';
}

export interface WorkTreeChangedEventData { readonly files: number; readonly lines_added: number; readonly lines_removed: number }
export interface StartStepEventData { readonly from: ConversationStartStatus | null; readonly to: ConversationStartStatus }
export interface SetupScriptEventData { readonly execution_id: string | null; readonly status: 'running' | 'succeeded' | 'failed' }

export interface MicroagentsEventData {
  readonly given: readonly ({ readonly path: string; readonly trigger: string | null })[];
  readonly left_out: readonly ({ readonly path: string; readonly why: 'too_many' | 'too_large' | 'not_readable' | 'front_matter' })[];
  readonly left_out_count: number;
}

export interface ExecutionChangedEventData { readonly from: AgentStatus | null; readonly to: AgentStatus | null }
export interface AgentStartedEventData { readonly session_id: string; readonly loaded: boolean }

export interface SandboxMovedEventData {
  readonly from: SandboxStatus | null;
  readonly to: SandboxStatus | null;
  readonly pause_kind: PauseKind | null;
}

export type ConversationArchivedEventData = object;
export type ConversationDeletedEventData = object;

/** Replaces the key in the URL of a stream or WebSocket: browsers cannot send headers there. */
export interface EventTicket {
  /** Send it as the query parameter `ticket`. */
  readonly ticket: string;
  readonly expires_at: Timestamp;
}

/** An execution environment that can be started, paused and resumed. */
export interface Sandbox {
  readonly id: string;
  readonly created_by_user_id: string;
  readonly sandbox_spec_id: string;
  readonly status: SandboxStatus;
  /** The reason, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
  /** How the sandbox is paused, or will be. */
  readonly pause_kind: PauseKind | null;
  /** Who paused it; `runtime` is something outside of Skep. Null when it runs again. */
  readonly paused_by: EventActor | null;
  readonly paused_reason: StatusReason | null;
  /** The sandbox's own key, for requests to its ports. Null unless it is RUNNING, and null if your key can only read. */
  readonly session_api_key: string | null;
  /** The URLs of its ports. Null unless it is RUNNING. */
  readonly exposed_urls: readonly ExposedUrl[] | null;
  /** The metadata of the start request. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly created_at: Timestamp;
  readonly updated_at: Timestamp;
  readonly last_active_at: Timestamp;
  /** When it is deleted, even if it is in use. Null: never. */
  readonly expires_at: Timestamp | null;
}

export interface ExposedUrl {
  readonly name: string;
  readonly url: string;
  /** The port in the sandbox. */
  readonly port: number;
}

export interface SandboxUsage {
  /** CPU time since its last start, in milliseconds. */
  readonly cpu_ms: number | null;
  /** CPU use over about the last second. 100 is one full CPU. */
  readonly cpu_percent: number | null;
  readonly memory_bytes: number | null;
  /** Also null if there is no limit. */
  readonly memory_limit_bytes: number | null;
  /** The size of the files that it added or changed. */
  readonly disk_bytes: number | null;
  /** How many processes and threads it has. */
  readonly pids: number | null;
  readonly at: Timestamp;
}

/** Gives everybody who has it access to one port of one sandbox, until it or your key expires. */
export interface PortLink {
  /** Open it in a browser. */
  readonly url: string;
  /** Not later than your key expires. */
  readonly expires_at: Timestamp;
}

/** A command in a sandbox. */
export interface Execution {
  readonly id: string;
  readonly sandbox_id: string;
  readonly command: readonly string[];
  /** Whether it takes input. */
  readonly stdin: boolean;
  /** Whether it runs in a terminal. */
  readonly tty: boolean;
  /** `lost`: the exit code is not known, for example because the sandbox was stopped before the command ended. */
  readonly status: 'running' | 'exited' | 'lost';
  /** The reason, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
  /** Null unless the status is `exited`. If a signal ended the command, 128 plus the number of the signal. */
  readonly exit_code: number | null;
  /** Whether the command continues, and its output is kept, when the server stops. */
  readonly durable: boolean;
  /** How many bytes it has written. In a list, this may be an earlier number. */
  readonly stdout_bytes: number;
  readonly stderr_bytes: number;
  readonly started_at: Timestamp;
  /** When it is killed (SIGKILL) if it still runs. */
  readonly deadline: Timestamp | null;
  readonly ended_at: Timestamp | null;
}

/** A file, directory or link in a sandbox. */
export interface FileEntry {
  readonly name: string;
  /** The absolute path. Bytes that are not UTF-8 are replaced by U+FFFD. */
  readonly path: string;
  /** `other` is a device, a pipe or a socket. */
  readonly type: 'file' | 'directory' | 'symlink' | 'other';
  /** The length of a file in bytes. Without meaning for other types. */
  readonly size: number;
  /** The permission bits, octal. */
  readonly mode: string;
  readonly modified_at: Timestamp;
  /** The target of a symbolic link; null for other types. */
  readonly target: string | null;
}

/** A template from which sandboxes are started. */
export interface SandboxSpec {
  readonly id: string;
  readonly description: string | null;
  readonly image: string | null;
  /** The program and its arguments. Null: the image's own command. Also null if your key can only read. */
  readonly command: readonly string[] | null;
  readonly working_dir: string;
  /** Values whose name looks like that of a secret are masked. */
  readonly initial_env: Readonly<Record<string, string>>;
  /** The names that a start request can have in `secrets`. */
  readonly allowed_secrets: readonly string[];
  readonly ports: readonly SandboxPort[];
  /** Which paused sandboxes a request to a port resumes. `freeze`: only frozen ones. `stop`: also stopped ones. */
  readonly wake_on_access: 'none' | 'freeze' | 'stop';
  readonly rest: RestRule;
  /** The coding agent of conversations. Null: no agent. */
  readonly agent: SandboxAgent | null;
  readonly resources: SandboxResources;
  readonly created_at: Timestamp;
}

export interface SandboxPort {
  readonly name: string;
  readonly port: number;
  /** True: the proxy needs no key for this port. */
  readonly public: boolean;
}

/** When an idle sandbox is frozen, stopped and deleted. Null: never. */
export interface RestRule {
  /** Counted from the last activity of a running sandbox. */
  readonly freeze_after_seconds: number | null;
  /** Counted from the freeze. */
  readonly stop_after_seconds: number | null;
  /** Counted from the stop. */
  readonly delete_after_seconds: number | null;
  /** Counted from its creation, even if it is in use. */
  readonly max_life_seconds: number | null;
}

export interface SandboxAgent { readonly protocol: string }

/** The limits of a sandbox. Null: no limit. */
export interface SandboxResources {
  readonly cpus: number | null;
  readonly memory_bytes: number | null;
  /** Processes and threads. */
  readonly pids: number | null;
}

/** An overview of the state of the deployment. */
export interface Overview {
  readonly at: Timestamp;
  /** `all`: everything, for an administrator. `own`: only what your user owns. */
  readonly scope: 'all' | 'own';
  readonly sandboxes: {
    readonly by_status: Readonly<Record<'STARTING' | 'RUNNING' | 'PAUSING' | 'PAUSED' | 'RESUMING' | 'ERROR' | 'MISSING', number>>;
    readonly in_quarantine: number;
  };
  /** Without archived ones. */
  readonly conversations: {
    readonly by_start_status: Readonly<Record<'WORKING' | 'WAITING_FOR_SANDBOX' | 'PREPARING_REPOSITORY' | 'RUNNING_SETUP_SCRIPT'
      | 'LISTING_MICROAGENTS' | 'STARTING_AGENT' | 'READY' | 'ERROR', number>>;
    /** Only conversations with an agent. */
    readonly by_execution_status: Readonly<Record<'idle' | 'running' | 'waiting_for_permission' | 'frozen' | 'error', number>>;
  };
  /** The newest 20 sandboxes and the newest 20 conversations. */
  readonly problems: readonly OverviewProblem[];
  readonly starts: OverviewStarts;
  readonly limits: readonly OverviewLimit[];
  /** The next 20, the soonest first, as of the last sweep. */
  readonly upcoming: readonly UpcomingAction[];
  /** The same parts as in `/ready`. Only an administrator gets details. */
  readonly parts: readonly PartReadiness[];
  /** For administrators only. */
  readonly deployment: OverviewDeployment | null;
}

/** A sandbox or conversation that failed, or that takes more than a minute to start. */
export interface OverviewProblem {
  readonly kind: 'sandbox' | 'conversation';
  readonly id: string;
  readonly user_id: string;
  readonly sandbox_spec_id: string;
  /** The title of a conversation; null for a sandbox. */
  readonly title: string | null;
  /** The status of the sandbox, or the step that the start of the conversation has reached. */
  readonly status: 'STARTING' | 'RUNNING' | 'PAUSING' | 'PAUSED' | 'RESUMING' | 'ERROR' | 'MISSING' | 'WORKING' | 'WAITING_FOR_SANDBOX'
    | 'PREPARING_REPOSITORY' | 'RUNNING_SETUP_SCRIPT' | 'LISTING_MICROAGENTS' | 'STARTING_AGENT' | 'READY';
  /** The reason, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
  /** When the sandbox got this status, or when the conversation was last changed. */
  readonly since: Timestamp;
}

export interface OverviewStarts {
  /** The counts begin here: an hour ago, at the start of this server, or later after more than 2,000 starts. */
  readonly since: Timestamp;
  readonly succeeded: number;
  readonly failed: number;
  /** How many of the successful starts used a sandbox from a pool. */
  readonly from_pool: number;
  /** The time from the request until RUNNING. Null if no start succeeded. */
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
}

export interface OverviewLimit {
  readonly limit: string;
  /** Null is no limit. */
  readonly max: number | null;
  readonly used: number;
  /** For a limit per owner: the owner that is nearest to the limit. */
  readonly user_id: string | null;
}

/** What the idle policy will do if nobody uses the sandbox before. */
export interface UpcomingAction {
  readonly sandbox_id: string;
  readonly user_id: string;
  readonly sandbox_spec_id: string;
  readonly action: 'freeze' | 'stop' | 'delete';
  readonly at: Timestamp;
  readonly reason: StatusReason;
}

export interface PartReadiness { readonly part: string; readonly adapter: string; readonly ok: boolean; readonly detail: string }

export interface OverviewDeployment {
  readonly pools: readonly OverviewPool[];
  /** The disk of the sandboxes, at the last sweep. Null if the runtime does not know it. */
  readonly disk: {
    readonly total_bytes: number;
    readonly free_bytes: number;
    readonly used_percent: number;
    readonly limit_percent: number;
  } | null;
  readonly memory: {
    /** The memory of the server process. */
    readonly server_bytes: number;
    /** The free memory of the machine of the server. */
    readonly machine_free_bytes: number;
    readonly machine_total_bytes: number;
    /** The agents' output that is kept in memory. */
    readonly agents_held_bytes: number;
    readonly agents_max_bytes: number;
  };
}

export interface OverviewPool {
  readonly sandbox_spec_id: string;
  readonly target: number;
  readonly running: number;
  readonly starting: number;
  /** Starts that found a sandbox in the pool, since this server started. */
  readonly hits: number;
  /** Starts that found the pool empty, since this server started. */
  readonly misses: number;
  /** Why the last sandbox of the pool was lost. Null if one started since. */
  readonly failure_detail: string | null;
  readonly failure_reason: StatusReason | null;
}

export interface SettingList { readonly items: readonly Setting[] }

export interface Setting {
  readonly key: string;
  /** The environment variable. Null if only the configuration file can set it. */
  readonly variable: string | null;
  readonly source: 'environment' | 'file' | 'default';
  /** As a text for people. Null if there is none, and always null for a secret. */
  readonly value: string | null;
  readonly is_secret: boolean;
  /** Which values are allowed, as a text for people. */
  readonly form: string;
}

export interface KeyList { readonly items: readonly Key[] }

/** An API key, without the key itself. */
export interface Key {
  readonly id: string;
  readonly name: string;
  /** The owner of everything that the key creates. */
  readonly user_id: string;
  readonly access: KeyAccess;
  /** The repositories that it can list, clone and publish to, as patterns (`acme/*`). Null: all. */
  readonly repositories: readonly string[] | null;
  readonly created_at: Timestamp;
  /** Null: never. */
  readonly expires_at: Timestamp | null;
  readonly revoked_at: Timestamp | null;
  readonly state: 'valid' | 'expired' | 'revoked';
  /** Whether it is the key of this request. */
  readonly is_own: boolean;
}

export interface CreatedKey {
  readonly id: string;
  readonly name: string;
  /** The owner of everything that the key creates. */
  readonly user_id: string;
  readonly access: KeyAccess;
  /** The repositories that it can list, clone and publish to, as patterns (`acme/*`). Null: all. */
  readonly repositories: readonly string[] | null;
  readonly created_at: Timestamp;
  /** Null: never. */
  readonly expires_at: Timestamp | null;
  /** The key itself. No later response shows it. */
  readonly key: string;
}

export interface Health { readonly status: 'ok' }

/** Whether the server can handle requests, and whether each part of the deployment answers. */
export interface Readiness {
  /** `degraded`: the server works, but a part other than the store does not answer. */
  readonly status: 'ready' | 'degraded' | 'not_ready';
  readonly parts: readonly PartReadiness[];
}

/** Who makes the request. */
export interface Caller {
  /** The owner of everything that the key creates. */
  readonly user_id: string;
  readonly key_name: string;
  readonly access: KeyAccess;
  /** The repositories that the key can list, clone and publish to, as patterns (`acme/*`). Null: all. */
  readonly repositories: readonly string[] | null;
  /** Whether keys can be listed, made and revoked over HTTP. */
  readonly has_keys: boolean;
}

export type PageQuery = {
  /** The `next_page_id` of the previous page of the same list in the same order. */
  readonly page_id?: string | undefined;
  /** The maximum number of items. */
  readonly limit?: number | undefined;
};

export type IdempotencyHeaders = {
  /**
   * Makes the request safe to repeat: a second request with the same key returns what the first one started, as it is now. It is a 404
   * for a day after that was deleted.
   */
  readonly 'Idempotency-Key'?: string | undefined;
};

/** All requests of the API, and their responses: `Response` if it is bytes. The API reference describes them. */
export interface Operations {
  'GET /api/user/repository/{repository_name}/microagents': { readonly response: readonly MicroagentResponse[] };
  'GET /api/user/repository/{repository_name}/microagents/content': {
    readonly query: { /** The `path` that the list shows. */ readonly file_path: string };
    readonly response: MicroagentContentResponse;
  };
  'GET /api/v1/repositories/search': {
    readonly query: PageQuery & { /** A part of the name. Upper and lower case are equal. */ readonly query: string };
    readonly response: RepositoryPage;
  };
  'GET /api/v1/repositories/{repository_name}/branches': { readonly query?: PageQuery | undefined; readonly response: Page<Branch> };
  'POST /api/v1/app-conversations': {
    readonly headers?: IdempotencyHeaders | undefined;
    readonly body?: AppConversationStartRequest | undefined;
    readonly response: AppConversation;
  };
  'GET /api/v1/app-conversations': {
    readonly query?: PageQuery & {
      /** Only conversations with these ids. Repeat the parameter for each id. */
      readonly ids?: readonly string[] | undefined;
      /** Sort order; equal values are sorted by id. */
      readonly sort_order?: 'CREATED_AT' | 'CREATED_AT_DESC' | 'UPDATED_AT' | 'UPDATED_AT_DESC' | undefined;
      /** Only conversations whose title contains this text. Case and accents are ignored. */
      readonly title__contains?: string | undefined;
      /** Only those created at this time or later. RFC 3339; write the + of an offset as %2B. */
      readonly created_at__gte?: Timestamp | undefined;
      /** Only those created before this time. */
      readonly created_at__lt?: Timestamp | undefined;
      /** Only those updated at this time or later. */
      readonly updated_at__gte?: Timestamp | undefined;
      /** Only those updated before this time. */
      readonly updated_at__lt?: Timestamp | undefined;
      /** Only those that use this sandbox. */
      readonly sandbox_id__eq?: string | undefined;
    } | undefined;
    readonly response: Page<AppConversation>;
  };
  'GET /api/v1/app-conversations/{id}': { readonly response: AppConversation };
  'PATCH /api/v1/app-conversations/{id}': {
    readonly body?: AppConversationUpdateRequest | undefined;
    readonly response: AppConversation;
  };
  'DELETE /api/v1/app-conversations/{id}': { readonly response: void };
  'GET /api/v1/app-conversations/{id}/transcript': {
    readonly query?: { readonly format?: 'markdown' | 'json' | undefined } | undefined;
    readonly response: Transcript;
  };
  'POST /api/v1/app-conversations/{id}/messages': {
    readonly headers?: IdempotencyHeaders | undefined;
    readonly body: Message;
    readonly response: MessageAccepted;
  };
  'POST /api/v1/app-conversations/{id}/cancel': { readonly body?: TurnCancellation | undefined; readonly response: AppConversation };
  'POST /api/v1/app-conversations/{id}/permissions/{permission_id}': {
    readonly body: PermissionAnswer;
    readonly response: AppConversation;
  };
  'GET /api/v1/app-conversations/{id}/changes': {
    readonly query?: {
      /** `patch` is for `git apply --binary`; `archive` is a tar of the work tree. */
      readonly format?: 'json' | 'patch' | 'archive' | undefined;
      /** Only this file, as a patch. */
      readonly path?: string | undefined;
    } | undefined;
    readonly response: ConversationChanges;
  };
  'POST /api/v1/app-conversations/{id}/publish': { readonly body?: PublishRequest | undefined; readonly response: PublishResponse };
  'GET /api/v1/app-conversations/{id}/events': {
    readonly query?: PageQuery & {
      /** Only events of these kinds. Repeat the parameter for each kind. */
      readonly kinds?: readonly EventKind[] | undefined;
      /** Begin after the event with this id. `page_id` overrides it. */
      readonly after?: number | undefined;
    } | undefined;
    readonly response: Page<Event>;
  };
  'GET /api/v1/app-conversations/{id}/events/stream': {
    readonly query?: {
      /** Only events of these kinds. Repeat the parameter for each kind. */
      readonly kinds?: readonly EventKind[] | undefined;
      /** A ticket instead of the key, for browsers: they cannot send the header with the key here. */
      readonly ticket?: string | undefined;
      /** Begin after the event with this id. `0`: the beginning of the log. `latest`: its end. `Last-Event-ID` overrides it. */
      readonly after?: string | undefined;
    } | undefined;
    readonly headers?: {
      /** The id of the last event seen. Browsers send it when they reconnect. */
      readonly 'Last-Event-ID'?: number | undefined;
    } | undefined;
    readonly response: Response;
  };
  'GET /api/v1/events': {
    readonly query?: PageQuery & {
      /** Only events of these kinds. Repeat the parameter for each kind. */
      readonly kinds?: readonly EventKind[] | undefined;
      /** Begin after the event with this id. `page_id` overrides it. */
      readonly after?: number | undefined;
      /** Only events of this sandbox itself. Those of its conversations are in their own logs. */
      readonly sandbox_id__eq?: string | undefined;
    } | undefined;
    readonly response: Page<Event>;
  };
  'GET /api/v1/events/ticket': { readonly response: EventTicket };
  'GET /api/v1/events/stream': Operations['GET /api/v1/app-conversations/{id}/events/stream'];
  'GET /api/v1/sandboxes/search': {
    readonly query?: PageQuery & {
      /** Only sandboxes with this status. */
      readonly status__eq?: SandboxStatus | undefined;
      /** Only sandboxes of this spec. */
      readonly sandbox_spec_id__eq?: string | undefined;
      /** Only sandboxes with this `key=value` in their metadata, for example `?metadata__eq=task%3D42`. Repeat it for each pair. */
      readonly metadata__eq?: readonly string[] | undefined;
    } | undefined;
    readonly response: Page<Sandbox>;
  };
  'GET /api/v1/sandboxes': Operations['GET /api/v1/sandboxes/search'];
  'POST /api/v1/sandboxes': {
    readonly query?: {
      /** The spec. Use either this parameter or the field in the body. */
      readonly sandbox_spec_id?: string | undefined;
    } | undefined;
    readonly headers?: IdempotencyHeaders | undefined;
    readonly body?: SandboxStartRequest | undefined;
    readonly response: Sandbox;
  };
  'GET /api/v1/sandboxes/{id}': { readonly response: Sandbox };
  'DELETE /api/v1/sandboxes/{id}': { readonly response: void };
  'POST /api/v1/sandboxes/{id}/pause': { readonly body?: SandboxPauseRequest | undefined; readonly response: Sandbox };
  'POST /api/v1/sandboxes/{id}/resume': { readonly response: Sandbox };
  'POST /api/v1/sandboxes/{id}/adopt': { readonly body?: SandboxAdoptRequest | undefined; readonly response: Sandbox };
  'GET /api/v1/sandboxes/{id}/logs': {
    readonly query?: {
      /** Only the last bytes, at most this many. Default: everything that is kept. */
      readonly tail_bytes?: number | undefined;
      /** Continue until the sandbox stops. */
      readonly follow?: boolean | undefined;
    } | undefined;
    readonly response: Response;
  };
  'GET /api/v1/sandboxes/{id}/usage': { readonly response: SandboxUsage };
  'POST /api/v1/sandboxes/{id}/ports/{port}/links': { readonly body?: PortLinkRequest | undefined; readonly response: PortLink };
  'POST /api/v1/sandboxes/{id}/executions': {
    readonly headers?: IdempotencyHeaders | undefined;
    readonly body: ExecutionRequest;
    readonly response: Execution;
  };
  'GET /api/v1/sandboxes/{id}/executions': { readonly query?: PageQuery | undefined; readonly response: Page<Execution> };
  'GET /api/v1/sandboxes/{id}/executions/{execution_id}': { readonly response: Execution };
  'DELETE /api/v1/sandboxes/{id}/executions/{execution_id}': { readonly response: void };
  'GET /api/v1/sandboxes/{id}/executions/{execution_id}/output': {
    readonly query?: {
      /** For a command in a terminal, `tty` and `stdout` are the same. */
      readonly stream?: 'stdout' | 'stderr' | 'tty' | undefined;
      /** The offset of the first byte. Default: 0. */
      readonly after?: number | undefined;
      /** Go on until the command has ended. */
      readonly follow?: boolean | undefined;
      /**
       * While output is followed: the command waits while this client is behind, as for the reader of a pipe, so no output is dropped.
       * Works only on the server that started the command, and not with a key that can only read. Default: the command never waits.
       */
      readonly hold?: boolean | undefined;
    } | undefined;
    readonly response: Response;
  };
  'POST /api/v1/sandboxes/{id}/executions/{execution_id}/input': {
    readonly query?: { /** Close the input afterwards. */ readonly close?: boolean | undefined } | undefined;
    readonly body?: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array> | undefined;
    readonly response: void;
  };
  'POST /api/v1/sandboxes/{id}/executions/{execution_id}/signal': { readonly body: ExecutionSignal; readonly response: void };
  'POST /api/v1/sandboxes/{id}/executions/{execution_id}/resize': { readonly body: TerminalSize; readonly response: void };
  'GET /api/v1/sandboxes/{id}/executions/{execution_id}/attach': {
    readonly query?: {
      /** The offset of the first byte of standard output. Default: what is kept, and of a terminal the last screenfuls. */
      readonly after?: number | undefined;
      /** The same for standard error. */
      readonly after_stderr?: number | undefined;
      /** Take the writer's place. */
      readonly takeover?: boolean | undefined;
      /**
       * While output is followed: the command waits while this client is behind, as for the reader of a pipe, so no output is dropped.
       * Works only on the server that started the command, and not with a key that can only read. Default: the command never waits.
       */
      readonly hold?: boolean | undefined;
      /**
       * The server sends at most about this many bytes that the client has not confirmed with `{"read": bytes}`, and confirms input with
       * `{"passed": bytes}`. For clients whose WebSocket can not stop reading; they send at most 1 MiB of input that is not passed on.
       * Default: no limit.
       */
      readonly window?: number | undefined;
      /** A ticket instead of the key, for browsers: they cannot send the header with the key here. */
      readonly ticket?: string | undefined;
    } | undefined;
    readonly response: void;
  };
  'GET /api/v1/sandboxes/{id}/files': {
    readonly query: { /** An absolute path in the sandbox. */ readonly path: string };
    readonly headers?: {
      /** The range of bytes to read. */
      readonly Range?: string | undefined;
      /** An `ETag`. If the file has changed since, the whole file is returned. */
      readonly 'If-Range'?: string | undefined;
      /** An `ETag`. If the file is unchanged, the response is 304 without a body. */
      readonly 'If-None-Match'?: string | undefined;
    } | undefined;
    readonly response: Response;
  };
  'PUT /api/v1/sandboxes/{id}/files': {
    readonly query: {
      /** An absolute path in the sandbox. */
      readonly path: string;
      /** The permission bits, octal. Default: those of the existing file, or 0644 for a new file. */
      readonly mode?: string | undefined;
    };
    readonly headers?: {
      /** An `ETag`. If the file has another one, the response is 412; with `*`, if there is no file. */
      readonly 'If-Match'?: string | undefined;
      /** With `*`, the response is 412 if there is a file. */
      readonly 'If-None-Match'?: string | undefined;
    } | undefined;
    readonly body?: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array> | undefined;
    readonly response: FileEntry;
  };
  'DELETE /api/v1/sandboxes/{id}/files': {
    readonly query: {
      /** An absolute path in the sandbox. */
      readonly path: string;
      /** Whether to remove a directory with everything in it. */
      readonly recursive?: boolean | undefined;
    };
    readonly response: void;
  };
  'GET /api/v1/sandboxes/{id}/directories': {
    readonly query: PageQuery & {
      /** An absolute path in the sandbox. */
      readonly path: string;
      /** How many levels to list. 1: only the entries of the directory itself. */
      readonly depth?: number | undefined;
    };
    readonly response: Page<FileEntry>;
  };
  'POST /api/v1/sandboxes/{id}/directories': {
    readonly query: { /** An absolute path in the sandbox. */ readonly path: string };
    readonly response: FileEntry;
  };
  'GET /api/v1/sandboxes/{id}/archive': {
    readonly query: { /** An absolute path in the sandbox. */ readonly path: string };
    readonly response: Response;
  };
  'PUT /api/v1/sandboxes/{id}/archive': {
    readonly query: { /** An absolute path in the sandbox. */ readonly path: string };
    readonly body?: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array> | undefined;
    readonly response: void;
  };
  'GET /api/v1/sandbox-specs/search': { readonly query?: PageQuery | undefined; readonly response: Page<SandboxSpec> };
  'GET /api/v1/sandbox-specs': { readonly query?: PageQuery | undefined; readonly response: Page<SandboxSpec> };
  'GET /api/v1/overview': { readonly response: Overview };
  'GET /api/v1/settings': { readonly response: SettingList };
  'GET /metrics': { readonly response: Response };
  'GET /api/v1/keys': { readonly response: KeyList };
  'POST /api/v1/keys': { readonly body: KeyCreateRequest; readonly response: CreatedKey };
  'DELETE /api/v1/keys/{key}': { readonly response: void };
  'POST /api/v1/login': { readonly body: LoginRequest; readonly response: CreatedKey };
  'GET /health': { readonly response: Health };
  'GET /ready': { readonly response: Readiness };
  'GET /api/v1/me': { readonly response: Caller };
  'GET /openapi.json': { readonly response: { readonly openapi: string; readonly [name: string]: unknown } };
  'GET /docs': { readonly response: Response };
}

/** The data of a failure besides its message, by its code. */
export interface ApiFailures {
  readonly branch_not_found: { readonly repository: string; readonly branch: string };
  readonly conversation_changes_unavailable: { readonly conversation_id: string; readonly reason: StatusReason };
  readonly conversation_limit_reached: { readonly limit: string; readonly max: number; readonly retry_after_seconds: number };
  readonly conversation_not_found: { readonly conversation_id: string };
  readonly conversation_not_ready: { readonly conversation_id: string; readonly reason: StatusReason };
  readonly conversation_publish_refused: { readonly conversation_id: string; readonly branch: string; readonly reason: StatusReason };
  readonly execution_limit_reached: { readonly limit: string; readonly max: number; readonly retry_after_seconds: number };
  readonly execution_not_found: { readonly execution_id: string };
  readonly file_not_found: { readonly path: string };
  readonly forbidden: { readonly access: KeyAccess | null };
  readonly freeze_unsupported: { readonly runtime: string };
  readonly idempotency_conflict: { readonly key: string };
  readonly input_closed: { readonly execution_id: string };
  readonly internal: { readonly incident: string };
  readonly invalid_request: { readonly problems: readonly ValidationError[] };
  readonly key_name_taken: { readonly name: string };
  readonly key_not_found: { readonly key_id: string };
  readonly keys_unsupported: object;
  readonly listing_unsupported: { readonly provider: string; readonly listing: string };
  readonly login_code_invalid: object;
  readonly origin_forbidden: object;
  readonly output_dropped: { readonly oldest: number };
  readonly payload_too_large: { readonly limit_bytes: number; readonly size_bytes: number | null };
  readonly permission_not_found: { readonly permission_id: string };
  readonly port_not_exposed: { readonly sandbox_id: string; readonly port: number; readonly exposed: readonly number[] };
  readonly precondition_failed: { readonly etag: string | null };
  readonly provider_failed: { readonly provider: string; readonly reason: StatusReason };
  readonly provider_rate_limited: { readonly provider: string; readonly retry_after_seconds: number };
  readonly provider_timeout: { readonly provider: string; readonly limit_ms: number };
  readonly provider_unauthorized: { readonly provider: string };
  readonly proxy_off: object;
  readonly pull_request_refused: {
    readonly provider: string;
    readonly repository: string;
    readonly branch: string;
    readonly reason: StatusReason;
  };
  readonly pull_requests_unsupported: { readonly provider: string };
  readonly range_not_satisfiable: { readonly size: number };
  readonly rate_limited: { readonly limit: string; readonly retry_after_seconds: number };
  readonly repository_empty: { readonly repository: string; readonly branch: string };
  readonly repository_forbidden: { readonly provider: string; readonly repository: string };
  readonly repository_not_found: { readonly repository: string };
  readonly runtime_timeout: { readonly runtime: string; readonly limit_ms: number };
  readonly runtime_unavailable: { readonly runtime: string; readonly reason: StatusReason; readonly retry_after_seconds: number };
  readonly sandbox_busy: { readonly sandbox_id: string; readonly sandbox_status: SandboxStatus };
  readonly sandbox_in_quarantine: { readonly sandbox_id: string };
  readonly sandbox_limit_reached: { readonly limit: string; readonly max: number; readonly retry_after_seconds: number };
  readonly sandbox_not_found: { readonly sandbox_id: string };
  readonly sandbox_not_paused: { readonly sandbox_id: string; readonly sandbox_status: SandboxStatus };
  readonly sandbox_not_running: { readonly sandbox_id: string; readonly sandbox_status: SandboxStatus };
  readonly shutting_down: { readonly retry_after_seconds: number };
  readonly store_unavailable: { readonly reason: StatusReason; readonly retry_after_seconds: number };
  readonly unauthorized: object;
  readonly upgrade_required: object;
  readonly wrong_file_type: { readonly path: string; readonly file_type: 'file' | 'directory' | 'symlink' | 'other' };
}

/** The requests with an `Idempotency-Key`. If one is repeated with the same key, it takes effect once. */
export const keyedRoutes: ReadonlySet<string> = new Set([
  'POST /api/v1/app-conversations',
  'POST /api/v1/app-conversations/{id}/messages',
  'POST /api/v1/sandboxes',
  'POST /api/v1/sandboxes/{id}/executions',
]);
