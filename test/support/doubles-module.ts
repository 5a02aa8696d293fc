import { ContainerModule } from 'inversify';
import { provideValue, type ServiceOf, type Token, tokens } from '../../src/composition/wiring/tokens.ts';

type Tokens = typeof tokens;
type Multiple = 'gitProvider' | 'agentProtocol';

/** The doubles to bind, by the names of their tokens. A list has one binding for each item. */
export type Doubles = {
  readonly [Name in keyof Tokens]?: Name extends Multiple ? readonly ServiceOf<Tokens[Name]>[] : ServiceOf<Tokens[Name]>;
};

/** Returns a module that binds doubles instead of the services that the options choose. */
export function doublesModule(doubles: Doubles): ContainerModule {
  return new ContainerModule(({ bind, rebind, unbind }) => {
    for (const [name, double] of Object.entries(doubles)) {
      const target = tokens[name as keyof Tokens] as Token<unknown>;
      if (name === 'gitProvider' || name === 'agentProtocol') {
        unbind(target.id);
        for (const one of double as readonly unknown[]) provideValue(bind, target, one);
      } else provideValue(rebind, target, double);
    }
  });
}
