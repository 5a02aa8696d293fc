import type { SkepOptions, SpecOptions } from './options.ts';

/** Returns the options for `createSkep` as the server would choose them, without what is about the server alone. Throws a `ConfigError`. */
export async function loadConfig(file: string, env: NodeJS.ProcessEnv = process.env): Promise<SkepOptions> {
  const [{ readConfigFile }, { readConfig }, { chooseRuntime }] = await Promise.all([
    import('./config/config-file.ts'), import('./config/read-config.ts'), import('./config/runtime-choice.ts'),
  ]);
  const config = readConfig({ ...env, SKEP_CONFIG: file });
  const { specs } = readConfigFile(file).keys;
  const { options: runtime } = await chooseRuntime(config);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the configuration with these specs was found right above
  return { ...config.options, runtime, specs: specs as SpecOptions[] };
}
