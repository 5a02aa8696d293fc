/** Work on the files of sandboxes that is under way, which a removal ends. */
export interface Tasks {
  /** Answers with the signal that ends the work, and how to say that it is over. */
  begin(id: string): { readonly signal: AbortSignal; readonly over: () => void };
  /** Ends the work on one sandbox, or on all, with the reason, and waits for it. */
  end(reason: Error, id?: string): Promise<void>;
}

interface Task {
  readonly id: string;
  readonly controller: AbortController;
  readonly over: PromiseWithResolvers<void>;
}

export function createTasks(): Tasks {
  const tasks = new Set<Task>();
  return {
    begin(id) {
      const task: Task = { id, controller: new AbortController(), over: Promise.withResolvers() };
      tasks.add(task);
      return {
        signal: task.controller.signal,
        over() {
          tasks.delete(task);
          task.over.resolve();
        },
      };
    },
    async end(reason, id) {
      const ended = [...tasks].filter((task) => id === undefined || task.id === id);
      for (const { controller } of ended) controller.abort(reason);
      await Promise.all(ended.map(({ over }) => over.promise));
    },
  };
}
