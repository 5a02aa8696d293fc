/** A project of the double, and the bare repository behind it. */
export interface HostedProject {
  readonly id: number;
  path: string;
  gitDir: string;
  /** `private` projects need a token. Nobody may read the code of `closed` ones. */
  visibility: 'public' | 'private' | 'closed';
}

/** The projects by path, numbered in order. Paths are case-insensitive everywhere in GitLab. */
export interface Projects {
  /** Creates the project, or replaces the repository of the project with this path. */
  put(path: string, gitDir: string, visibility?: HostedProject['visibility']): HostedProject;
  /** Requests for the old path are redirected to the new one. */
  rename(from: string, to: string): void;
  remove(path: string): void;
  all(): readonly HostedProject[];
  find(name: string): { readonly project: HostedProject; readonly moved: boolean } | null;
}

export function createProjects(): Projects {
  const projects: HostedProject[] = [];
  const moved = new Map<string, HostedProject>();
  const byPath = (path: string): HostedProject | undefined => projects.find((each) => each.path.toLowerCase() === path.toLowerCase());

  return {
    put(path, gitDir, visibility = 'private') {
      const known = byPath(path);
      if (known !== undefined) return Object.assign(known, { gitDir, visibility });
      const project: HostedProject = { id: 1000 + projects.length + moved.size, path, gitDir, visibility };
      projects.push(project);
      return project;
    },
    rename(from, to) {
      const project = byPath(from);
      if (project === undefined) throw new Error(`there is no project ${from}`);
      moved.set(from.toLowerCase(), project);
      project.path = to;
    },
    remove(path) {
      const index = projects.findIndex((each) => each.path === path);
      projects.splice(index, index === -1 ? 0 : 1);
    },
    all: () => projects,
    find(name) {
      const project = /^\d+$/u.test(name) ? projects.find(({ id }) => id === Number(name)) : byPath(name);
      if (project !== undefined) return { project, moved: false };
      const former = moved.get(name.toLowerCase());
      return former === undefined ? null : { project: former, moved: true };
    },
  };
}
