import { z } from 'zod';

const LaunchPlan = z.object({
  /** Unguessable value of the variable by which the processes of the launch are known. */
  mark: z.string(),
  ports: z.array(z.object({ name: z.string(), port: z.number(), hostPort: z.number() })),
  /** Where the spec's programs find the workspace. Older claims do not say. */
  workingDir: z.string().optional(),
  /** Where the command looks for programs. */
  path: z.string().optional(),
  /** Why the command could not be run at all, in words. */
  refused: z.string().optional(),
});

/** What is decided for a launch before it begins. It holds no secret: the process list shows it. */
export type LaunchPlan = Readonly<z.infer<typeof LaunchPlan>>;

/** Null where the text is not a plan. */
export function parsePlan(json: string): LaunchPlan | null {
  try {
    return LaunchPlan.parse(JSON.parse(json));
  } catch {
    return null;
  }
}
