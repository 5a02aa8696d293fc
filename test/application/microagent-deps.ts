import { parseYamlFrontMatter } from '../../src/adapters/front-matter/yaml-front-matter.ts';
import type { MicroagentDeps } from '../../src/application/microagents/microagents.ts';

/** The dependencies of the microagent use cases, except repositories. */
export function microagentDeps(): Omit<MicroagentDeps, 'repositories'> {
  const texts = new Map<string, string>();
  return {
    product: 'skep',
    parseFrontMatter: async (text: string) => parseYamlFrontMatter(text),
    texts,
  };
}
