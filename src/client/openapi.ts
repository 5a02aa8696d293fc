// Made from the OpenAPI document. After a change of the API: npx vitest run test/client/openapi-types.test.ts --update=true

export interface Page<T> {
  readonly items: readonly T[];
  /** Send it as `page_id` for the next page; null on the last one. */
  readonly next_page_id: string | null;
}

export interface AppConversationStartRequest {
  readonly title?: string | null | undefined;
  /** Use this sandbox; otherwise one is started. */
  readonly sandbox_id?: string | null | undefined;
  /** Start the sandbox from this spec; otherwise from the default one. */
  readonly sandbox_spec_id?: string | null | undefined;
  /** Variables of the sandbox's command, besides those of the spec or in place of them. No answer shows them. */
  readonly env?: Readonly<Record<string, string>> | null | undefined;
  /** Texts by which to find the sandbox again. Whoever may read it sees them. */
  readonly metadata?: Readonly<Record<string, string>> | null | undefined;
  /** From the creation to the deletion, whatever the sandbox does; at most the `max_life` of the spec, and that if left out. */
  readonly timeout_seconds?: number | null | undefined;
  /** Limits of the sandbox; each at most that of the spec, and that if left out. */
  readonly resources?: ChosenResources | null | undefined;
  /** Names of variables of the server's environment, of those in the spec's `allowed_secrets`, which the sandbox's command gets too. */
  readonly secrets?: readonly string[] | null | undefined;
  /** The repository to work on, which must exist; named as in the path of its microagents. */
  readonly selected_repository?: string | null | undefined;
  /** A branch of that repository. */
  readonly selected_branch?: string | null | undefined;
  readonly initial_message?: Message | null | undefined;
  /** What becomes of the agent's requests for permission: granted, put to you, or refused. Null is the spec's own policy. */
  readonly permission_policy?: 'allow' | 'ask' | 'deny' | null | undefined;
}

export interface ChosenResources {
  readonly cpus?: number | undefined;
  readonly memory_bytes?: number | undefined;
  readonly pids?: number | undefined;
}

export interface Message { readonly content: readonly TextContent[] }
export interface TextContent { readonly type: 'text'; readonly text: string }

export interface AppConversationUpdateRequest {
  readonly title?: string | null | undefined;
  /** True archives it; an archived one stays so. */
  readonly archived?: boolean | undefined;
}

export interface PermissionAnswer {
  /** One of the options that the event `permission_requested` offers. */
  readonly option_id: string;
}

export interface PublishRequest {
  /** Not the default branch of the repository. Default: a branch of the conversation alone. */
  readonly branch?: string | undefined;
  /** Of what is not committed. Default: the title of the conversation. */
  readonly commit_message?: string | undefined;
  /** Opens a pull request, or a merge request of GitLab, and updates the open one of the branch. */
  readonly pull_request?: PullRequestRequest | undefined;
}

export interface PullRequestRequest {
  readonly title: string;
  /** As Markdown. */
  readonly body?: string | undefined;
  /** What to merge into. Default: the default branch for a new one; an open one keeps its base. */
  readonly base?: string | undefined;
  /** Whether a new one is a draft. An open one stays what it is. */
  readonly draft?: boolean | undefined;
}

export type EventKind = 'message' | 'message_chunk' | 'tool_call' | 'plan' | 'usage' | 'permission_requested' | 'permission_answered'
  | 'turn_started' | 'turn_ended' | 'work_tree_changed' | 'start_step' | 'setup_script' | 'microagents' | 'execution_changed'
  | 'agent_started' | 'sandbox_moved' | 'conversation_archived' | 'conversation_deleted';

export interface SandboxStartRequest {
  readonly sandbox_spec_id?: string | null | undefined;
  /** Variables of the sandbox's command, besides those of the spec or in place of them. No answer shows them. */
  readonly env?: Readonly<Record<string, string>> | null | undefined;
  /** Texts by which to find the sandbox again. Whoever may read it sees them. */
  readonly metadata?: Readonly<Record<string, string>> | null | undefined;
  /** From the creation to the deletion, whatever the sandbox does; at most the `max_life` of the spec, and that if left out. */
  readonly timeout_seconds?: number | null | undefined;
  /** Limits of the sandbox; each at most that of the spec, and that if left out. */
  readonly resources?: ChosenResources | null | undefined;
  /** Names of variables of the server's environment, of those in the spec's `allowed_secrets`, which the sandbox's command gets too. */
  readonly secrets?: readonly string[] | null | undefined;
}

export interface SandboxPauseRequest {
  /** `freeze` keeps memory and processes; `stop` frees the memory and keeps the files. */
  readonly pause_kind?: 'freeze' | 'stop' | undefined;
}

export interface SandboxAdoptRequest {
  /** Its owner. Default: the one that the runtime knows. */
  readonly user_id?: string | null | undefined;
  /** Its spec. Default: the one that the runtime knows. */
  readonly sandbox_spec_id?: string | null | undefined;
}

export interface PortLinkRequest {
  /** How long the link, and what it opened, can be used. */
  readonly expires_in_seconds?: number | undefined;
}

export interface ExecutionRequest {
  /** The program and its arguments. */
  readonly command?: readonly string[] | undefined;
  /** Instead of `command`: a text that `/bin/sh -c` runs. */
  readonly shell?: string | undefined;
  /** Added to the sandbox's own variables. They are not kept. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Default: that of the sandbox's spec. */
  readonly working_dir?: string | null | undefined;
  /** After this time it is ended with SIGKILL, also after a restart of the server. */
  readonly timeout_seconds?: number | null | undefined;
  /** Whether it takes input. Default: false, and true for one with a terminal. */
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
  /** No other key that is not revoked has it. */
  readonly name: string;
  /** Default: the caller's. */
  readonly user_id?: string | undefined;
  /** `full` may see and change what its user owns, `read` only see it, and `admin` see and change what any user owns. */
  readonly access?: 'full' | 'read' | 'admin' | undefined;
  /** Default: all of them. A key that is limited to repositories needs a user of its own. */
  readonly repositories?: readonly string[] | null | undefined;
  /** Default: for ever. */
  readonly expires_in_seconds?: number | undefined;
  /** How it looks; E2B's clients take only `e2b`. */
  readonly format?: 'skep' | 'e2b' | undefined;
}

export interface LoginRequest {
  /** What stands after `#/login/` in the link. */
  readonly code: string;
}

/** A Markdown file in a repository that guides agents. */
export interface MicroagentResponse {
  /** The path below the directory, without its ending. */
  readonly name: string;
  /** Relative to the repository's root. */
  readonly path: string;
  /** When the earliest commit of the default branch that touches the path was made. RFC 3339, in UTC. */
  readonly created_at: string;
}

/** Problem details as of RFC 9457. */
export interface Problem {
  readonly type: string;
  /** The phrase of the HTTP status. */
  readonly title: string;
  /** The HTTP status. */
  readonly status: number;
  /** What went wrong and what to do, as a sentence. */
  readonly detail: string;
  /** The name of the failure, for programs. */
  readonly code: 'unauthorized' | 'forbidden' | 'origin_forbidden' | 'login_code_invalid' | 'not_found' | 'repository_not_found'
    | 'key_not_found' | 'branch_not_found' | 'sandbox_not_found' | 'conversation_not_found' | 'permission_not_found' | 'file_not_found'
    | 'port_not_exposed' | 'execution_not_found' | 'method_not_allowed' | 'wrong_file_type' | 'repository_empty' | 'sandbox_not_running'
    | 'sandbox_not_paused' | 'sandbox_busy' | 'sandbox_in_quarantine' | 'proxy_off' | 'freeze_unsupported' | 'conversation_not_ready'
    | 'conversation_changes_unavailable' | 'conversation_publish_refused' | 'listing_unsupported' | 'pull_requests_unsupported'
    | 'pull_request_refused' | 'key_name_taken' | 'keys_unsupported' | 'idempotency_conflict' | 'input_closed' | 'output_dropped'
    | 'payload_too_large' | 'range_not_satisfiable' | 'sandbox_limit_reached' | 'conversation_limit_reached' | 'upgrade_required'
    | 'execution_limit_reached' | 'rate_limited' | 'internal' | 'port_closed' | 'repository_forbidden' | 'provider_unauthorized'
    | 'provider_failed' | 'provider_rate_limited' | 'runtime_unavailable' | 'store_unavailable' | 'shutting_down' | 'provider_timeout'
    | 'runtime_timeout';
  /** As in the header Retry-After. */
  readonly retry_after_seconds?: number | undefined;
  readonly repository?: string | undefined;
  readonly branch?: string | undefined;
  readonly sandbox_id?: string | undefined;
  /** The status of the sandbox that refused the move. */
  readonly sandbox_status?: 'STARTING' | 'RUNNING' | 'PAUSING' | 'PAUSED' | 'RESUMING' | 'ERROR' | 'MISSING' | undefined;
  readonly conversation_id?: string | undefined;
  readonly permission_id?: string | undefined;
  /** A port inside a sandbox. */
  readonly port?: number | undefined;
  /** The ports that the spec of the sandbox names. */
  readonly exposed?: readonly number[] | undefined;
  readonly execution_id?: string | undefined;
  /** A path inside a sandbox, or of a repository. */
  readonly path?: string | undefined;
  /** How many bytes the file has. */
  readonly size?: number | undefined;
  readonly file_type?: 'file' | 'directory' | 'symlink' | 'other' | undefined;
  /** The offset of the oldest byte of the output that is kept. */
  readonly oldest?: number | undefined;
  readonly allow?: readonly string[] | undefined;
  readonly key_id?: string | undefined;
  /** The name of a key. */
  readonly name?: string | undefined;
  /** The idempotency key. */
  readonly key?: string | undefined;
  /** The limit that is reached. */
  readonly limit?: string | undefined;
  readonly max?: number | undefined;
  readonly limit_bytes?: number | undefined;
  readonly limit_ms?: number | undefined;
  /** Id of this error in the log. */
  readonly incident?: string | undefined;
  readonly provider?: string | undefined;
  /** What the git provider has no list of. */
  readonly listing?: string | undefined;
  readonly runtime?: string | undefined;
  readonly reason?: StatusReason | undefined;
  readonly [name: string]: unknown;
}

/** Why, for programs: a code with its data. New codes may come with any version, so expect codes that you do not know. */
export interface StatusReason { readonly code: string; readonly [name: string]: unknown }

/** Everything in the request that is not valid. */
export interface HTTPValidationError { readonly detail: readonly ValidationError[] }

export interface ValidationError {
  /** The place; begins with path, query, header or body. */
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
}

/** A microagent with its content. */
export interface MicroagentContentResponse {
  /** The path below the directory, without its ending. */
  readonly name: string;
  /** Relative to the repository's root. */
  readonly path: string;
  /** When the earliest commit of the default branch that touches the path was made. RFC 3339, in UTC. */
  readonly created_at: string;
  /**
   * The text after the front matter; the whole text if there is none, or it can not be read. What is not UTF-8 is U+FFFD, and a byte
   * order mark is left out.
   */
  readonly content: string;
  /** Words that call the microagent; empty if the front matter has none. */
  readonly triggers: readonly string[];
  /** The mapping between the two lines `---` at the beginning of the file; null if there is none, or it can not be read. */
  readonly front_matter: Readonly<Record<string, unknown>> | null;
  /** What is wrong with the front matter. */
  readonly front_matter_problem: FrontMatterProblem | null;
  readonly git_provider: string;
}

export interface FrontMatterProblem {
  /** For programs. New codes may come with any version. */
  readonly code: string;
  /** What is wrong, as a sentence. */
  readonly detail: string;
  /** The line of the file; null if it is not one line. */
  readonly line: number | null;
}

export type RepositoryPage = Page<Repository>;

/** A repository of a git provider. */
export interface Repository {
  /** As `selected_repository` of a conversation takes it. */
  readonly name: string;
  /** As its git provider has it. */
  readonly path: string;
  readonly git_provider: string;
}

export type BranchPage = Page<Branch>;

export interface Branch {
  readonly name: string;
  /** The id of its last commit. */
  readonly commit: string;
  readonly is_default: boolean;
}

/** A conversation with an agent, powered by a sandbox. */
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
  /** How far its start has come. */
  readonly start_status: 'WORKING' | 'WAITING_FOR_SANDBOX' | 'PREPARING_REPOSITORY' | 'RUNNING_SETUP_SCRIPT' | 'LISTING_MICROAGENTS'
    | 'STARTING_AGENT' | 'READY' | 'ERROR';
  /** What its agent does; null while there is none. */
  readonly execution_status: 'idle' | 'running' | 'waiting_for_permission' | 'frozen' | 'error' | null;
  /** Why, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
  /** Those that were opened or updated for what it published. */
  readonly pull_requests: readonly PublishedPullRequest[];
  /** RFC 3339, in UTC. */
  readonly created_at: string;
  /** RFC 3339, in UTC. */
  readonly updated_at: string;
  /** When it was archived: nothing runs in it any more. */
  readonly archived_at: string | null;
}

export type SandboxStatus = 'STARTING' | 'RUNNING' | 'PAUSING' | 'PAUSED' | 'RESUMING' | 'ERROR' | 'MISSING';
export interface PublishedPullRequest { readonly branch: string; readonly number: number; readonly url: string }
export type AppConversationPage = Page<AppConversation>;
export interface Transcript { readonly items: readonly TranscriptEntry[] }

/** Something that was said or done. Turns that ended as they should are left out. */
export type TranscriptEntry = {
  readonly kind: 'message';
  /** When it was complete. Of a user's message: when the agent got it, or was sent if the agent never got it. */
  readonly at: string;
  readonly role: 'user' | 'agent';
  readonly text: string;
} | {
  readonly kind: 'permission';
  /** RFC 3339, in UTC. */
  readonly at: string;
  /** What the agent asked for. */
  readonly title: string;
  readonly decision: 'allowed' | 'refused' | 'withdrawn';
  /** The option that was chosen; null if the request was withdrawn. */
  readonly option_name: string | null;
  /** Who decided; `skep` for a policy or a time limit. */
  readonly actor: 'user' | 'agent' | 'skep' | 'runtime';
  /** Why, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
} | {
  readonly kind: 'tool_call';
  /** RFC 3339, in UTC. */
  readonly at: string;
  readonly title: string;
  readonly tool_kind: string;
  readonly status: 'pending' | 'in_progress' | 'completed' | 'failed';
  readonly paths: readonly string[];
} | {
  readonly kind: 'turn_ended';
  /** RFC 3339, in UTC. */
  readonly at: string;
  readonly stop_reason: string;
  /** Why, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
};

/** The message is kept, and handed to the agent in its turn. */
export interface MessageAccepted {
  /** The events of its turn name it. */
  readonly message_id: string;
}

export interface ConversationChanges {
  /** The changes are those of this time, because the sandbox does not run; null if they are those of now. */
  readonly kept_at: string | null;
  /** Where the conversation began; null if the repository was empty. */
  readonly start_commit: string | null;
  readonly start_branch: string | null;
  /** The last commit in the sandbox. */
  readonly head_commit: string | null;
  /** False if git could not read some files. */
  readonly complete: boolean;
  /** Newest first. */
  readonly commits: readonly AgentCommit[];
  /** All that differ from the start, committed or not; sorted by path. */
  readonly files: readonly FileChange[];
  /** The branches that it was pushed to, each with the last commit. */
  readonly published: readonly Publication[];
}

/** A commit that was made in the conversation. */
export interface AgentCommit {
  readonly commit: string;
  readonly author_name: string;
  readonly author_email: string;
  /** RFC 3339, in UTC. */
  readonly committed_at: string;
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
  /** Whether the file is now as the last commit has it. */
  readonly committed: boolean;
}

/** Where the changes were pushed to. */
export interface Publication { readonly branch: string; readonly commit: string; readonly pull_request: PullRequest }

/** Null if none was asked for. */
export type PullRequest = { readonly number: number; readonly url: string } | null;
export type EventPage = Page<Event>;

/** Something that was said or done. The kind decides which form its data has. */
export type Event = MessageEvent | MessageChunkEvent | ToolCallEvent | PlanEvent | UsageEvent | PermissionRequestedEvent
  | PermissionAnsweredEvent | TurnStartedEvent | TurnEndedEvent | WorkTreeChangedEvent | StartStepEvent | SetupScriptEvent
  | MicroagentsEvent | ExecutionChangedEvent | AgentStartedEvent | SandboxMovedEvent | ConversationArchivedEvent
  | ConversationDeletedEvent;

export interface EventBase {
  /** Its place in the log: later events have greater ones. */
  readonly id: number;
  /** RFC 3339, in UTC. */
  readonly at: string;
  readonly conversation_id: string | null;
  readonly sandbox_id: string | null;
  /** Who caused it: a caller, the agent, a rule or repair of the deployment, or what its runtime found. */
  readonly actor: 'user' | 'agent' | 'skep' | 'runtime';
  /** Why, as a sentence. */
  readonly reason: string | null;
  readonly status_reason: StatusReason | null;
}

export interface MessageEvent extends EventBase { readonly kind: 'message'; readonly data: MessageEventData }
export interface MessageChunkEvent extends EventBase { readonly kind: 'message_chunk'; readonly data: MessageChunkEventData }
export interface ToolCallEvent extends EventBase { readonly kind: 'tool_call'; readonly data: ToolCallEventData }
export interface PlanEvent extends EventBase { readonly kind: 'plan'; readonly data: PlanEventData }
export interface UsageEvent extends EventBase { readonly kind: 'usage'; readonly data: UsageEventData }

export interface PermissionRequestedEvent extends EventBase {
  readonly kind: 'permission_requested';
  readonly data: PermissionRequestedEventData;
}

export interface PermissionAnsweredEvent extends EventBase {
  readonly kind: 'permission_answered';
  readonly data: PermissionAnsweredEventData;
}

export interface TurnStartedEvent extends EventBase { readonly kind: 'turn_started'; readonly data: TurnStartedEventData }
export interface TurnEndedEvent extends EventBase { readonly kind: 'turn_ended'; readonly data: TurnEndedEventData }
export interface WorkTreeChangedEvent extends EventBase { readonly kind: 'work_tree_changed'; readonly data: WorkTreeChangedEventData }
export interface StartStepEvent extends EventBase { readonly kind: 'start_step'; readonly data: StartStepEventData }
export interface SetupScriptEvent extends EventBase { readonly kind: 'setup_script'; readonly data: SetupScriptEventData }
export interface MicroagentsEvent extends EventBase { readonly kind: 'microagents'; readonly data: MicroagentsEventData }
export interface ExecutionChangedEvent extends EventBase { readonly kind: 'execution_changed'; readonly data: ExecutionChangedEventData }
export interface AgentStartedEvent extends EventBase { readonly kind: 'agent_started'; readonly data: AgentStartedEventData }
export interface SandboxMovedEvent extends EventBase { readonly kind: 'sandbox_moved'; readonly data: SandboxMovedEventData }

export interface ConversationArchivedEvent extends EventBase {
  readonly kind: 'conversation_archived';
  readonly data: ConversationArchivedEventData;
}

export interface ConversationDeletedEvent extends EventBase {
  readonly kind: 'conversation_deleted';
  readonly data: ConversationDeletedEventData;
}

export interface MessageEventData {
  readonly message_id: string;
  readonly role: 'user' | 'agent';
  /** `thought` shows how the agent came to its answer. */
  readonly channel: 'answer' | 'thought';
  readonly text: string;
}

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
  readonly content: readonly ({ readonly type: 'text'; readonly text: string } | {
    readonly type: 'diff';
    readonly path: string;
    readonly old_text: string | null;
    readonly new_text: string;
  })[];
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

export interface StartStepEventData {
  readonly from: 'WORKING' | 'WAITING_FOR_SANDBOX' | 'PREPARING_REPOSITORY' | 'RUNNING_SETUP_SCRIPT' | 'LISTING_MICROAGENTS'
    | 'STARTING_AGENT' | 'READY' | 'ERROR' | null;
  readonly to: 'WORKING' | 'WAITING_FOR_SANDBOX' | 'PREPARING_REPOSITORY' | 'RUNNING_SETUP_SCRIPT' | 'LISTING_MICROAGENTS'
    | 'STARTING_AGENT' | 'READY' | 'ERROR';
}

export interface SetupScriptEventData { readonly execution_id: string | null; readonly status: 'running' | 'succeeded' | 'failed' }

export interface MicroagentsEventData {
  readonly given: readonly ({ readonly path: string; readonly trigger: string | null })[];
  readonly left_out: readonly ({ readonly path: string; readonly why: 'too_many' | 'too_large' | 'not_readable' | 'front_matter' })[];
  readonly left_out_count: number;
}

export interface ExecutionChangedEventData {
  readonly from: 'idle' | 'running' | 'waiting_for_permission' | 'frozen' | 'error' | null;
  readonly to: 'idle' | 'running' | 'waiting_for_permission' | 'frozen' | 'error' | null;
}

export interface AgentStartedEventData { readonly session_id: string; readonly loaded: boolean }

export interface SandboxMovedEventData {
  readonly from: SandboxStatus | null;
  readonly to: SandboxStatus | null;
  readonly pause_kind: 'freeze' | 'stop' | null;
}

export type ConversationArchivedEventData = object;
export type ConversationDeletedEventData = object;

/** Stands for your key in the address of a stream, where a browser can send no headers. */
export interface EventTicket {
  /** Send it as `ticket`. */
  readonly ticket: string;
  /** RFC 3339, in UTC. */
  readonly expires_at: string;
}

export type SandboxPage = Page<Sandbox>;

/** An execution environment that can be started, paused and resumed. */
export interface Sandbox {
  readonly id: string;
  readonly created_by_user_id: string;
  readonly sandbox_spec_id: string;
  readonly status: SandboxStatus;
  /** Why, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
  /** The tier of rest that is wanted or holds. */
  readonly pause_kind: 'freeze' | 'stop' | null;
  /** Who paused it, until it runs again: its owner, a rule of Skep, or something outside. */
  readonly paused_by: 'user' | 'agent' | 'skep' | 'runtime' | null;
  readonly paused_reason: StatusReason | null;
  /** The sandbox's own key, for clients of its ports; only while it is RUNNING, and not for a key that may only read. */
  readonly session_api_key: string | null;
  /** Where its ports are reached; only while it is RUNNING. */
  readonly exposed_urls: readonly ExposedUrl[] | null;
  /** What its owner wrote down with it at the start. */
  readonly metadata: Readonly<Record<string, string>>;
  /** RFC 3339, in UTC. */
  readonly created_at: string;
  /** RFC 3339, in UTC. */
  readonly updated_at: string;
  /** RFC 3339, in UTC. */
  readonly last_active_at: string;
  /** When it is deleted, whatever it does; null for never. */
  readonly expires_at: string | null;
}

export interface ExposedUrl {
  readonly name: string;
  readonly url: string;
  /** The port inside the sandbox. */
  readonly port: number;
}

export interface SandboxUsage {
  /** CPU time of its present run, in milliseconds. */
  readonly cpu_ms: number | null;
  /** CPU time per time, over the last second or so: 100 is one CPU. */
  readonly cpu_percent: number | null;
  readonly memory_bytes: number | null;
  /** Null if there is no limit, too. */
  readonly memory_limit_bytes: number | null;
  /** Files that it added or changed. */
  readonly disk_bytes: number | null;
  /** How many processes and threads it has. */
  readonly pids: number | null;
  /** RFC 3339, in UTC. */
  readonly at: string;
}

/** Lets whoever has it reach one port of one sandbox, until it or your key ends. */
export interface PortLink {
  /** Open it in a browser. */
  readonly url: string;
  /** RFC 3339, in UTC. */
  readonly expires_at: string;
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
  /** `lost`: its sandbox was stopped or went away before it ended, or nobody knows how it ended. */
  readonly status: 'running' | 'exited' | 'lost';
  /** Why, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
  /** 128 and the number of the signal if a signal ended it; null unless it has exited. */
  readonly exit_code: number | null;
  /** Whether it goes on, and its output is kept, when the server ends. */
  readonly durable: boolean;
  /** How much it has written; in a list, as far as was seen. */
  readonly stdout_bytes: number;
  readonly stderr_bytes: number;
  /** RFC 3339, in UTC. */
  readonly started_at: string;
  /** When it is ended with SIGKILL if it still runs. */
  readonly deadline: string | null;
  readonly ended_at: string | null;
}

export type ExecutionPage = Page<Execution>;

/** What is at a path of a sandbox. */
export interface File {
  readonly name: string;
  /** Absolute. What is not UTF-8 in it is replaced. */
  readonly path: string;
  /** `other` is a device, a pipe or a socket. */
  readonly type: 'file' | 'directory' | 'symlink' | 'other';
  /** The length of a file in bytes. Of anything else it means nothing. */
  readonly size: number;
  /** The permission bits, octal. */
  readonly mode: string;
  /** RFC 3339, in UTC. */
  readonly modified_at: string;
  /** Where a symbolic link leads to; null for anything else. */
  readonly target: string | null;
}

export type FilePage = Page<File>;
export type SandboxSpecPage = Page<SandboxSpec>;

/** A template from which sandboxes are started. */
export interface SandboxSpec {
  readonly id: string;
  readonly description: string | null;
  readonly image: string | null;
  /** The program and its arguments; null is the image's own. A key that may only read does not see it. */
  readonly command: readonly string[] | null;
  readonly working_dir: string;
  /** Values that look secret by their name are masked. */
  readonly initial_env: Readonly<Record<string, string>>;
  /** Names that a start may have in `secrets`. */
  readonly allowed_secrets: readonly string[];
  readonly ports: readonly SandboxPort[];
  /** Which paused sandboxes a request for a port resumes: none, frozen ones, or stopped ones too. */
  readonly wake_on_access: 'none' | 'freeze' | 'stop';
  readonly rest: RestRule;
  /** The coding agent that conversations talk with; null is none. */
  readonly agent: SandboxAgent | null;
  readonly resources: SandboxResources;
  /** RFC 3339, in UTC. */
  readonly created_at: string;
}

export interface SandboxPort {
  readonly name: string;
  readonly port: number;
  /** Anyone may reach it through the proxy. */
  readonly public: boolean;
}

/** What happens to a sandbox without a request; null is never. */
export interface RestRule {
  /** From the last activity of a running sandbox. */
  readonly freeze_after_seconds: number | null;
  /** From its freeze. */
  readonly stop_after_seconds: number | null;
  /** From its stop. */
  readonly delete_after_seconds: number | null;
  /** From its creation to its deletion, whatever it does. */
  readonly max_life_seconds: number | null;
}

export interface SandboxAgent { readonly protocol: string }

/** What a sandbox may use; null is no limit. */
export interface SandboxResources {
  readonly cpus: number | null;
  readonly memory_bytes: number | null;
  /** Processes and threads. */
  readonly pids: number | null;
}

/** The state of the deployment at a glance. */
export interface Overview {
  /** RFC 3339, in UTC. */
  readonly at: string;
  /** Whose: that of all users for an administrator, otherwise of the own user. */
  readonly scope: 'all' | 'own';
  readonly sandboxes: {
    readonly by_status: {
      readonly STARTING: number;
      readonly RUNNING: number;
      readonly PAUSING: number;
      readonly PAUSED: number;
      readonly RESUMING: number;
      readonly ERROR: number;
      readonly MISSING: number;
    };
    readonly in_quarantine: number;
  };
  /** Without archived ones. */
  readonly conversations: {
    readonly by_start_status: {
      readonly WORKING: number;
      readonly WAITING_FOR_SANDBOX: number;
      readonly PREPARING_REPOSITORY: number;
      readonly RUNNING_SETUP_SCRIPT: number;
      readonly LISTING_MICROAGENTS: number;
      readonly STARTING_AGENT: number;
      readonly READY: number;
      readonly ERROR: number;
    };
    /** Of those with an agent. */
    readonly by_execution_status: {
      readonly idle: number;
      readonly running: number;
      readonly waiting_for_permission: number;
      readonly frozen: number;
      readonly error: number;
    };
  };
  /** The newest 20 sandboxes and the newest 20 conversations. */
  readonly problems: readonly OverviewProblem[];
  readonly starts: OverviewStarts;
  readonly limits: readonly OverviewLimit[];
  /** The next 20 of the sandboxes that were there at the last sweep, the soonest first. */
  readonly upcoming: readonly UpcomingAction[];
  /** The store, the runtime, the git providers. An administrator sees details. */
  readonly parts: readonly PartReadiness[];
  /** For administrators only. */
  readonly deployment: OverviewDeployment | null;
}

/** What failed, or takes more than a minute to start. */
export interface OverviewProblem {
  readonly kind: 'sandbox' | 'conversation';
  readonly id: string;
  readonly user_id: string;
  readonly sandbox_spec_id: string;
  /** Of a conversation. */
  readonly title: string | null;
  /** The status of the sandbox, or how far the start of the conversation has come. */
  readonly status: 'STARTING' | 'RUNNING' | 'PAUSING' | 'PAUSED' | 'RESUMING' | 'ERROR' | 'MISSING' | 'WORKING' | 'WAITING_FOR_SANDBOX'
    | 'PREPARING_REPOSITORY' | 'RUNNING_SETUP_SCRIPT' | 'LISTING_MICROAGENTS' | 'STARTING_AGENT' | 'READY';
  /** Why, as a sentence. */
  readonly status_detail: string | null;
  readonly status_reason: StatusReason | null;
  /** When a sandbox got its status, and when a conversation was last changed. */
  readonly since: string;
}

export interface OverviewStarts {
  /** This server counts its own starts: those of the last hour, and none from before it began. */
  readonly since: string;
  readonly succeeded: number;
  readonly failed: number;
  /** How many of the successful ones came from a pool. */
  readonly from_pool: number;
  /** From the request until RUNNING. Null if there was no successful start. */
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
}

export interface OverviewLimit {
  readonly limit: string;
  /** Null is no limit. */
  readonly max: number | null;
  readonly used: number;
  /** For a limit per owner: the one who is nearest to it. */
  readonly user_id: string | null;
}

/** What the idle policy does if nobody uses the sandbox until then. */
export interface UpcomingAction {
  readonly sandbox_id: string;
  readonly user_id: string;
  readonly sandbox_spec_id: string;
  readonly action: 'freeze' | 'stop' | 'delete';
  /** RFC 3339, in UTC. */
  readonly at: string;
  readonly reason: StatusReason;
}

export interface PartReadiness { readonly part: string; readonly adapter: string; readonly ok: boolean; readonly detail: string }

export interface OverviewDeployment {
  readonly pools: readonly OverviewPool[];
  /** Where the sandboxes are, at the last sweep. Null if the runtime does not know. */
  readonly disk: {
    readonly total_bytes: number;
    readonly free_bytes: number;
    readonly used_percent: number;
    readonly limit_percent: number;
  } | null;
  readonly memory: {
    /** What the process of this server holds. */
    readonly server_bytes: number;
    /** Of the machine of this server. */
    readonly machine_free_bytes: number;
    readonly machine_total_bytes: number;
    /** What agents said that is held in memory. */
    readonly agents_held_bytes: number;
    readonly agents_max_bytes: number;
  };
}

export interface OverviewPool {
  readonly sandbox_spec_id: string;
  readonly target: number;
  readonly running: number;
  readonly starting: number;
  /** Starts that got a member, since this server began. */
  readonly hits: number;
  /** Starts that found none, since this server began. */
  readonly misses: number;
  /** Why a member was lost last; null if one has run since. */
  readonly failure_detail: string | null;
  readonly failure_reason: StatusReason | null;
}

export interface SettingList { readonly items: readonly Setting[] }

export interface Setting {
  readonly key: string;
  /** Null if it can only stand in the file. */
  readonly variable: string | null;
  readonly source: 'environment' | 'file' | 'default';
  /** For a person. Null if there is none, and always for a secret. */
  readonly value: string | null;
  readonly is_secret: boolean;
  /** What it takes. */
  readonly form: string;
}

export interface KeyList { readonly items: readonly Key[] }

/** An API key, without the key itself. */
export interface Key {
  readonly id: string;
  readonly name: string;
  /** Owns what the key creates. */
  readonly user_id: string;
  /** `full` may see and change what its user owns, `read` only see it, and `admin` see and change what any user owns. */
  readonly access: 'full' | 'read' | 'admin';
  /** The repositories that it may list and clone, as patterns (`acme/*`); null is all of them. */
  readonly repositories: readonly string[] | null;
  /** RFC 3339, in UTC. */
  readonly created_at: string;
  /** Null for never. */
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly state: 'valid' | 'expired' | 'revoked';
  /** Whether the request was made with it. */
  readonly is_own: boolean;
}

export interface NewKey {
  readonly id: string;
  readonly name: string;
  /** Owns what the key creates. */
  readonly user_id: string;
  /** `full` may see and change what its user owns, `read` only see it, and `admin` see and change what any user owns. */
  readonly access: 'full' | 'read' | 'admin';
  /** The repositories that it may list and clone, as patterns (`acme/*`); null is all of them. */
  readonly repositories: readonly string[] | null;
  /** RFC 3339, in UTC. */
  readonly created_at: string;
  /** Null for never. */
  readonly expires_at: string | null;
  /** The key itself, which is shown only now. */
  readonly key: string;
}

export interface Health { readonly status: 'ok' }

/** Whether the server can serve, and whether each part of the deployment answers. */
export interface Readiness {
  /** `degraded`: it can serve, but a part other than the store does not answer. */
  readonly status: 'ready' | 'degraded' | 'not_ready';
  readonly parts: readonly PartReadiness[];
}

/** Who makes the request. */
export interface Caller {
  /** Owns what the key creates. */
  readonly user_id: string;
  readonly key_name: string;
  readonly access: 'full' | 'read' | 'admin';
  /** The repositories that the key may list and clone, as patterns (`acme/*`); null is all of them. */
  readonly repositories: readonly string[] | null;
  /** Whether keys can be listed, made and revoked over HTTP. */
  readonly has_keys: boolean;
}

export type PageQuery = {
  /** The `next_page_id` of the page before, for the same listing in the same order. */
  readonly page_id?: string | undefined;
  /** How many items at most. */
  readonly limit?: number | undefined;
};

export type IdempotencyHeaders = {
  /** Two requests with one key are one request: the second gets the answer of the first. */
  readonly 'Idempotency-Key'?: string | undefined;
};

/** Every request that the API takes, and its answer: `Response` where that is bytes. The route names the path's parameters. */
export interface Operations {
  /**
   * List the microagents of a repository. Sorted by path, from the default branch. A repository without the directory, and an empty one,
   * has none. No content of a file is read. If the git host is down, the deployment may serve what the host confirmed before; the header
   * `Age` says how many seconds ago. `{repository_name}`: `owner/name`, `group/subgroup/name` or, for local git, a path below the root;
   * slashes as they are or as `%2F`. A host may stand in front (`github.com/owner/name`) and chooses the provider.
   */
  'GET /api/user/repository/{repository_name}/microagents': { readonly response: readonly MicroagentResponse[] };
  /**
   * Read a microagent of a repository. Its content and front matter, from the default branch. Only what the list of microagents shows is
   * found. Front matter that is broken is reported, and is no failure. A file of more than 1 MiB is a failure. The header `Age` is as in
   * the list. `{repository_name}`: `owner/name`, `group/subgroup/name` or, for local git, a path below the root; slashes as they are or
   * as `%2F`. A host may stand in front (`github.com/owner/name`) and chooses the provider.
   */
  'GET /api/user/repository/{repository_name}/microagents/content': {
    readonly query: { /** The `path` that the list shows. */ readonly file_path: string };
    readonly response: MicroagentContentResponse;
  };
  /**
   * Search repositories. By name, in one git provider after another: those that the credential of the deployment can see and the key may
   * use. GitHub also finds public ones of others. A page may be short, or empty, and yet not be the last one.
   */
  'GET /api/v1/repositories/search': {
    readonly query: PageQuery & { /** A part of the name, as it is, in any case. */ readonly query: string };
    readonly response: RepositoryPage;
  };
  /**
   * List the branches of a repository. Sorted by name. An empty repository has none. `{repository_name}`: `owner/name`,
   * `group/subgroup/name` or, for local git, a path below the root; slashes as they are or as `%2F`. A host may stand in front
   * (`github.com/owner/name`) and chooses the provider.
   */
  'GET /api/v1/repositories/{repository_name}/branches': { readonly query?: PageQuery | undefined; readonly response: BranchPage };
  /**
   * Start a conversation. Starts a sandbox for it, or takes the one that `sandbox_id` names. `sandbox_id` excludes `sandbox_spec_id` and
   * what a start is given (`env`, `metadata`, `timeout_seconds`, `resources`, `secrets`); `selected_branch` needs `selected_repository`.
   * `start_status` says how far the start has come.
   */
  'POST /api/v1/app-conversations': {
    readonly headers?: IdempotencyHeaders | undefined;
    readonly body?: AppConversationStartRequest | undefined;
    readonly response: AppConversation;
  };
  /** List conversations. */
  'GET /api/v1/app-conversations': {
    readonly query?: PageQuery & {
      /** Only these; repeat the parameter for each. */
      readonly ids?: readonly string[] | undefined;
      /** Sort order; equal values are sorted by id. */
      readonly sort_order?: 'CREATED_AT' | 'CREATED_AT_DESC' | 'UPDATED_AT' | 'UPDATED_AT_DESC' | undefined;
      /** Only those whose title contains it, in any case, with or without accents. */
      readonly title__contains?: string | undefined;
      /** Only those created then or later. RFC 3339; the + of an offset is written %2B. */
      readonly created_at__gte?: string | undefined;
      /** Only those created before. */
      readonly created_at__lt?: string | undefined;
      /** Only those updated then or later. */
      readonly updated_at__gte?: string | undefined;
      /** Only those updated before. */
      readonly updated_at__lt?: string | undefined;
      /** Only those that use this sandbox. */
      readonly sandbox_id__eq?: string | undefined;
    } | undefined;
    readonly response: AppConversationPage;
  };
  /** Get a conversation. */
  'GET /api/v1/app-conversations/{id}': { readonly response: AppConversation };
  /**
   * Change the title of a conversation, or archive it. Archiving ends its agent, and deletes the sandbox that it started, with its files,
   * if no other conversation uses it. What was said stays. It takes no message any more, and that can not be undone. Asking for it again
   * is a success.
   */
  'PATCH /api/v1/app-conversations/{id}': {
    readonly body?: AppConversationUpdateRequest | undefined;
    readonly response: AppConversation;
  };
  /** End a conversation. Its sandbox goes too if no other conversation uses it. Ending it again is a success. */
  'DELETE /api/v1/app-conversations/{id}': { readonly response: void };
  /** Read what was said and done in a conversation. As far as events are kept; also of an archived conversation. */
  'GET /api/v1/app-conversations/{id}/transcript': {
    readonly query?: { readonly format?: 'markdown' | 'json' | undefined } | undefined;
    readonly response: Transcript;
  };
  /**
   * Send a message. The agent gets messages in order, each when the turn before it has ended. One that comes while the sandbox is paused
   * resumes it. The events show what follows.
   */
  'POST /api/v1/app-conversations/{id}/messages': {
    readonly headers?: IdempotencyHeaders | undefined;
    readonly body: Message;
    readonly response: MessageAccepted;
  };
  /**
   * Stop the turn. Asks the agent to stop the turn, and ends an agent that does not. Messages that wait are not touched. Between turns
   * nothing happens.
   */
  'POST /api/v1/app-conversations/{id}/cancel': { readonly response: AppConversation };
  /** Answer a request for permission. */
  'POST /api/v1/app-conversations/{id}/permissions/{permission_id}': {
    readonly body: PermissionAnswer;
    readonly response: AppConversation;
  };
  /**
   * Get the changes of a conversation. What differs from where it began: the agent's commits, and what is not committed and not ignored,
   * by git in the sandbox. If it does not run, or the conversation is archived, that is what was kept last: after each turn, before it
   * was paused, and when it was archived. An archive is read also from a sandbox that does not run, and also has what is ignored. Nothing
   * is woken or changed. A patch or an archive that can not be completed breaks off.
   */
  'GET /api/v1/app-conversations/{id}/changes': {
    readonly query?: {
      /** `patch` is what `git apply --binary` takes, `archive` the work tree as tar. */
      readonly format?: 'json' | 'patch' | 'archive' | undefined;
      /** Only this file, as a patch. */
      readonly path?: string | undefined;
    } | undefined;
    readonly response: ConversationChanges;
  };
  /**
   * Publish the changes of a conversation. Commits what is not committed and pushes all to a branch, with the deployment's credential,
   * which never enters the sandbox. Again, after more work, it moves the branch. A branch with commits of others is never moved. With
   * `pull_request` it then opens a pull request, or updates the open one of the branch. If that fails, the branch is pushed, and
   * publishing again goes on from there.
   */
  'POST /api/v1/app-conversations/{id}/publish': { readonly body?: PublishRequest | undefined; readonly response: Publication };
  /** List the events of a conversation. Oldest first, those of its sandbox included. */
  'GET /api/v1/app-conversations/{id}/events': {
    readonly query?: PageQuery & {
      /** Only these kinds; repeat the parameter for each. */
      readonly kinds?: readonly EventKind[] | undefined;
      /** Begin after the event of this id; `page_id` goes before it. */
      readonly after?: string | undefined;
    } | undefined;
    readonly response: EventPage;
  };
  /**
   * Follow the events of a conversation. From the beginning of its log, or after `Last-Event-ID` or `after`. The stream ends when the
   * conversation is deleted.
   */
  'GET /api/v1/app-conversations/{id}/events/stream': {
    readonly query?: {
      /** Only these kinds; repeat the parameter for each. */
      readonly kinds?: readonly EventKind[] | undefined;
      /** Instead of the header with the key, for browsers, which can send none here. */
      readonly ticket?: string | undefined;
      /** Begin after the event of this id; `0` is the beginning of the log, `latest` its end. `Last-Event-ID` goes before it. */
      readonly after?: string | 'latest' | undefined;
    } | undefined;
    readonly headers?: {
      /** The id of the last event seen; browsers send it when they connect again. */
      readonly 'Last-Event-ID'?: string | undefined;
    } | undefined;
    readonly response: Response;
  };
  /** List what changed. Changes of your sandboxes and conversations, why and by whom, oldest first. `kinds` asks for other kinds. */
  'GET /api/v1/events': {
    readonly query?: PageQuery & {
      /** Only these kinds; repeat the parameter for each. */
      readonly kinds?: readonly EventKind[] | undefined;
      /** Begin after the event of this id; `page_id` goes before it. */
      readonly after?: string | undefined;
      /** Only those of this sandbox. */
      readonly sandbox_id__eq?: string | undefined;
    } | undefined;
    readonly response: EventPage;
  };
  /** Get a ticket for a stream of events, or for attaching to an execution. */
  'GET /api/v1/events/ticket': { readonly response: EventTicket };
  /** Follow what changes. From now on, or after `Last-Event-ID` or `after`. `kinds` asks for other kinds. */
  'GET /api/v1/events/stream': Operations['GET /api/v1/app-conversations/{id}/events/stream'];
  /** List sandboxes. Newest first. */
  'GET /api/v1/sandboxes/search': {
    readonly query?: PageQuery & {
      /** Only those with this status. */
      readonly status__eq?: 'STARTING' | 'RUNNING' | 'PAUSING' | 'PAUSED' | 'RESUMING' | 'ERROR' | 'MISSING' | undefined;
      /** Only those of this spec. */
      readonly sandbox_spec_id__eq?: string | undefined;
      /** Only those whose metadata has this `key=value`; repeat the parameter for each. Each key and value is percent-encoded. */
      readonly metadata__eq?: readonly string[] | undefined;
    } | undefined;
    readonly response: SandboxPage;
  };
  /** List sandboxes. The same as `/api/v1/sandboxes/search`. */
  'GET /api/v1/sandboxes': Operations['GET /api/v1/sandboxes/search'];
  /**
   * Start a sandbox. Answers while it is STARTING; ask for it again until it is RUNNING. If the runtime stays silent, it becomes an
   * ERROR.
   */
  'POST /api/v1/sandboxes': {
    readonly query?: { /** Instead of the one in the body. */ readonly sandbox_spec_id?: string | undefined } | undefined;
    readonly headers?: IdempotencyHeaders | undefined;
    readonly body?: SandboxStartRequest | undefined;
    readonly response: Sandbox;
  };
  /** Get a sandbox. */
  'GET /api/v1/sandboxes/{id}': { readonly response: Sandbox };
  /**
   * Delete a sandbox. No caller sees it any more when this answers. Its processes and files are removed by then too, unless the runtime
   * takes longer than 20 seconds or does not answer: then later. Deleting it again is a success.
   */
  'DELETE /api/v1/sandboxes/{id}': { readonly response: void };
  /**
   * Pause a sandbox. Pausing a paused one is a success that changes nothing, but `stop` stops a frozen one; the answer says which tier
   * holds.
   */
  'POST /api/v1/sandboxes/{id}/pause': { readonly body?: SandboxPauseRequest | undefined; readonly response: Sandbox };
  /** Resume a sandbox. Resuming a running one only notes the activity. */
  'POST /api/v1/sandboxes/{id}/resume': { readonly response: Sandbox };
  /**
   * Give a sandbox in quarantine to an owner. Needs an administrator's key. Such a key sees the sandboxes in quarantine in its list;
   * their owner is `skep:quarantine`. The sandbox stays stopped until it is resumed.
   */
  'POST /api/v1/sandboxes/{id}/adopt': { readonly body?: SandboxAdoptRequest | undefined; readonly response: Sandbox };
  /**
   * Read the log of a sandbox. What its own command wrote to its standard output and error, without its secrets' values; the bytes need
   * not be UTF-8. A paused sandbox stays so. Empty if the runtime has nothing of the sandbox.
   */
  'GET /api/v1/sandboxes/{id}/logs': {
    readonly query?: {
      /** Only so many bytes at its end. Default: all that is kept. */
      readonly tail_bytes?: number | undefined;
      /** Go on until the present run of the sandbox ends. */
      readonly follow?: 'true' | 'false' | undefined;
    } | undefined;
    readonly response: Response;
  };
  /** What a sandbox takes. May take seconds if it has many files. What is not known, or not taken since it does not run, is null. */
  'GET /api/v1/sandboxes/{id}/usage': { readonly response: SandboxUsage };
  /**
   * Make a link to a port. For a browser, which can send no key. The link ends with the key that made it. Making it wakes nothing.
   * `{port}`: A port of the sandbox that its spec names.
   */
  'POST /api/v1/sandboxes/{id}/ports/{port}/links': { readonly body?: PortLinkRequest | undefined; readonly response: PortLink };
  /** Run a command in a sandbox. Answers when it has begun. It goes on when the connection or the server is gone. */
  'POST /api/v1/sandboxes/{id}/executions': {
    readonly headers?: IdempotencyHeaders | undefined;
    readonly body: ExecutionRequest;
    readonly response: Execution;
  };
  /** List the executions of a sandbox. Newest first. The oldest that have ended are forgotten. */
  'GET /api/v1/sandboxes/{id}/executions': { readonly query?: PageQuery | undefined; readonly response: ExecutionPage };
  /** Get an execution. */
  'GET /api/v1/sandboxes/{id}/executions/{execution_id}': { readonly response: Execution };
  /** Kill and forget an execution. Ends it and all that it started, and removes its output. Deleting it again is a success. */
  'DELETE /api/v1/sandboxes/{id}/executions/{execution_id}': { readonly response: void };
  /**
   * Read the output of an execution. The bytes from the offset on. A client whose connection breaks goes on from the offset that it has.
   */
  'GET /api/v1/sandboxes/{id}/executions/{execution_id}/output': {
    readonly query?: {
      /** What is shown in a terminal is `tty`, or `stdout`. */
      readonly stream?: 'stdout' | 'stderr' | 'tty' | undefined;
      /** The offset of the first byte. Default: 0. */
      readonly after?: string | undefined;
      /** Go on until the command has ended. */
      readonly follow?: 'true' | 'false' | undefined;
    } | undefined;
    readonly response: Response;
  };
  /**
   * Write to the input of an execution. Answers when the bytes of the body are handed over, which waits while the command does not read.
   */
  'POST /api/v1/sandboxes/{id}/executions/{execution_id}/input': {
    readonly query?: { /** Close the input afterwards. */ readonly close?: 'true' | 'false' | undefined } | undefined;
    readonly body?: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array> | undefined;
    readonly response: void;
  };
  /** Send a signal to an execution. To its process group. To one that has ended nothing happens. */
  'POST /api/v1/sandboxes/{id}/executions/{execution_id}/signal': { readonly body: ExecutionSignal; readonly response: void };
  /** Change the size of an execution's terminal. */
  'POST /api/v1/sandboxes/{id}/executions/{execution_id}/resize': { readonly body: TerminalSize; readonly response: void };
  /**
   * Attach to an execution by a WebSocket. Binary messages are bytes, both ways. Text messages are control messages as JSON, and a client
   * needs none of them: `{"stream", "offset"}` comes before bytes of another stream than the last, `{"writer"}` says whether input is
   * taken, and the last one has `status` and `exit_code`. The client may send `{"resize": {"cols", "rows"}}`, `{"signal"}` and
   * `{"close_input": true}`. Many may be attached; one of them writes.
   */
  'GET /api/v1/sandboxes/{id}/executions/{execution_id}/attach': {
    readonly query?: {
      /** The offset of the first byte of standard output. Default: what is kept, and of a terminal the last screenfuls. */
      readonly after?: string | undefined;
      /** The same for standard error. */
      readonly after_stderr?: string | undefined;
      /** Take the writer's place. */
      readonly takeover?: 'true' | 'false' | undefined;
      /** Instead of the header with the key, for browsers, which can send none here. */
      readonly ticket?: string | undefined;
    } | undefined;
    readonly response: void;
  };
  /**
   * Read a file. Links are followed within the sandbox. One range is served; a request for several gets the whole file. Wakes nothing.
   */
  'GET /api/v1/sandboxes/{id}/files': {
    readonly query: { /** Absolute, in the sandbox. */ readonly path: string };
    readonly headers?: {
      /** The bytes that are wanted. */
      readonly Range?: string | undefined;
      /** An `ETag`: the range is served only if the file still has it. */
      readonly 'If-Range'?: string | undefined;
      /** An `ETag`: a file that still has it is a 304 without a body. */
      readonly 'If-None-Match'?: string | undefined;
    } | undefined;
    readonly response: Response;
  };
  /**
   * Write a file. Whoever reads it gets the old content or the new one, whole; if the request breaks off, the old file stays. Missing
   * directories are made, and a link is followed. Without a `Content-Length`, the sandbox may have to run. That counts as activity, and
   * wakes nothing.
   */
  'PUT /api/v1/sandboxes/{id}/files': {
    readonly query: {
      /** Absolute, in the sandbox. */
      readonly path: string;
      /** The permission bits, octal. Default: those of the file that is replaced, or 0644. */
      readonly mode?: string | undefined;
    };
    readonly body?: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array> | undefined;
    readonly response: File;
  };
  /** Remove a file. A link itself is removed. That counts as activity, and wakes nothing. */
  'DELETE /api/v1/sandboxes/{id}/files': {
    readonly query: {
      /** Absolute, in the sandbox. */
      readonly path: string;
      /** Whether to remove a directory too, with all that is in it. */
      readonly recursive?: 'true' | 'false' | undefined;
    };
    readonly response: void;
  };
  /**
   * List a directory. Ordered by path. Links below it are not followed. One that holds much can be listed only while the sandbox runs.
   * Wakes nothing.
   */
  'GET /api/v1/sandboxes/{id}/directories': {
    readonly query: PageQuery & {
      /** Absolute, in the sandbox. */
      readonly path: string;
      /** How many levels: 1 is what the directory itself holds. */
      readonly depth?: number | undefined;
    };
    readonly response: FilePage;
  };
  /** Make a directory. With the missing ones above it. That counts as activity, and wakes nothing. */
  'POST /api/v1/sandboxes/{id}/directories': {
    readonly query: { /** Absolute, in the sandbox. */ readonly path: string };
    readonly response: File;
  };
  /** Read a directory as a tar. Or a file. Names begin with the last segment of the path. Links are content. Wakes nothing. */
  'GET /api/v1/sandboxes/{id}/archive': {
    readonly query: { /** Absolute, in the sandbox. */ readonly path: string };
    readonly response: Response;
  };
  /**
   * Unpack a tar below a directory. The directory is made if it is not there. What is there stays, or is replaced file by file. An
   * archive whose names lead elsewhere is refused, and part of it may be unpacked. That counts as activity, and wakes nothing.
   */
  'PUT /api/v1/sandboxes/{id}/archive': {
    readonly query: { /** Absolute, in the sandbox. */ readonly path: string };
    readonly body?: Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array> | undefined;
    readonly response: void;
  };
  /** List sandbox specs. In the deployment's order; the first one is the default. */
  'GET /api/v1/sandbox-specs/search': { readonly query?: PageQuery | undefined; readonly response: SandboxSpecPage };
  /** List sandbox specs. The same as `/api/v1/sandbox-specs/search`. */
  'GET /api/v1/sandbox-specs': { readonly query?: PageQuery | undefined; readonly response: SandboxSpecPage };
  /** See the state of the deployment. What runs, rests and fails, and why; cheap enough to ask every few seconds. It wakes nothing. */
  'GET /api/v1/overview': { readonly response: Overview };
  /** See the settings of the server. Needs an administrator's key. Of secrets it shows only whether they are set. */
  'GET /api/v1/settings': { readonly response: SettingList };
  /** List keys. Oldest first, expired and revoked ones too: those of all users for an administrator, others those of the own user. */
  'GET /api/v1/keys': { readonly response: KeyList };
  /** Make a key. For administrators whose own key is not limited to repositories. */
  'POST /api/v1/keys': { readonly body: KeyCreateRequest; readonly response: NewKey };
  /** Revoke a key. At once, for open streams too. Revoking it again by its id is a success. `{key}`: The id of the key, or its name. */
  'DELETE /api/v1/keys/{key}': { readonly response: void };
  /** Log in by a link. Exchanges the code of a link to the dashboard for a key. The code works once, and for ten minutes. */
  'POST /api/v1/login': { readonly body: LoginRequest; readonly response: NewKey };
  /** Check that the server listens. */
  'GET /health': { readonly response: Health };
  /**
   * Check whether requests can be served. The server is ready if its store answers. A git host or an engine in trouble is shown, with the
   * status `degraded`.
   */
  'GET /ready': { readonly response: Readiness };
  /** See who you are. */
  'GET /api/v1/me': { readonly response: Caller };
  /** Get this description. */
  'GET /openapi.json': { readonly response: { readonly openapi: string; readonly [name: string]: unknown } };
  /** Read this description. */
  'GET /docs': { readonly response: Response };
}

/** What a failure says besides its message, by its code. */
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
  readonly forbidden: object;
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
  readonly payload_too_large: { readonly limit_bytes: number };
  readonly permission_not_found: { readonly permission_id: string };
  readonly port_not_exposed: { readonly sandbox_id: string; readonly port: number; readonly exposed: readonly number[] };
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
  readonly sandbox_busy: {
    readonly sandbox_id: string;
    readonly sandbox_status: 'STARTING' | 'RUNNING' | 'PAUSING' | 'PAUSED' | 'RESUMING' | 'ERROR' | 'MISSING';
  };
  readonly sandbox_in_quarantine: { readonly sandbox_id: string };
  readonly sandbox_limit_reached: { readonly limit: string; readonly max: number; readonly retry_after_seconds: number };
  readonly sandbox_not_found: { readonly sandbox_id: string };
  readonly sandbox_not_paused: {
    readonly sandbox_id: string;
    readonly sandbox_status: 'STARTING' | 'RUNNING' | 'PAUSING' | 'PAUSED' | 'RESUMING' | 'ERROR' | 'MISSING';
  };
  readonly sandbox_not_running: {
    readonly sandbox_id: string;
    readonly sandbox_status: 'STARTING' | 'RUNNING' | 'PAUSING' | 'PAUSED' | 'RESUMING' | 'ERROR' | 'MISSING';
  };
  readonly shutting_down: { readonly retry_after_seconds: number };
  readonly store_unavailable: { readonly reason: StatusReason; readonly retry_after_seconds: number };
  readonly unauthorized: object;
  readonly upgrade_required: object;
  readonly wrong_file_type: { readonly path: string; readonly file_type: 'file' | 'directory' | 'symlink' | 'other' };
}

/** Requests that take an `Idempotency-Key`: sent again with the same one, they are done once. */
export const keyedRoutes: ReadonlySet<string> = new Set([
  'POST /api/v1/app-conversations',
  'POST /api/v1/app-conversations/{id}/messages',
  'POST /api/v1/sandboxes',
  'POST /api/v1/sandboxes/{id}/executions',
]);
